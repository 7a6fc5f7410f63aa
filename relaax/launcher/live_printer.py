"""Prints lines as honcho does, with the progress and the groups of processes below the log."""

import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from honcho.printer import Printer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from relaax.launcher.process_log import ProcessLog
from relaax.launcher.run_record import RunRecorder
from relaax.parameters.process.progress import TrainingProgress, counted
from relaax.telemetry.live_lines import GROUPS, MARK, LiveLine, can_draw_on, combined

#: A bar needs so many columns, and so many rows with those of the log.
_BAR_COLUMNS, _BAR_ROWS = 50, 6

#: So many rows are left to the log.
_LOG_ROWS = 4

#: Columns of the name of a group.
_NAME_COLUMNS = max(map(len, GROUPS))

#: Seconds between two live lines of a process: as rows that are drawn again, and as lines.
ROWS_INTERVAL_S, LINES_INTERVAL_S = 2.0, 10.0

_STATE: TypeAdapter[TrainingProgress | LiveLine] = TypeAdapter(TrainingProgress | LiveLine)


def state_in(line: str) -> TrainingProgress | LiveLine | None:
    """Return the state that a line of a process has for ``relaax-train``; None for other lines."""
    if not line.startswith(MARK):
        return None
    try:
        return _STATE.validate_json(line.removeprefix(MARK))
    except ValidationError:
        return None


class ProgressView:
    """Draws the progress below the log: a bar and the figures, or one row where space is short.

    Several trainings, such as those of the policies of an experiment, have a row each. Below them
    is a row for each group of processes, as far as there is room.

    It returns text for the terminal that ``stream`` is. Rows are cut to the width, so that
    they can be erased again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        #: The last rendered rows, and their input: a log of many lines draws the same rows again.
        self._rendered_for: object = None
        self._rendered, self._lengths = "", [0]
        #: Lengths of the rows that are on the terminal.
        self._shown: list[int] = []

    def draw(
        self, progress: Mapping[str, TrainingProgress], groups: Sequence[LiveLine] = ()
    ) -> str:
        """Return the rows that show ``groups``, and the ``progress`` by the name of a training."""
        columns, rows = shutil.get_terminal_size()
        wanted = (dict(sorted(progress.items())), tuple(groups), columns, rows)
        if self._rendered_for != wanted:
            self._rendered_for = wanted
            self._rendered = self._rows(*wanted)
            self._lengths = [Text.from_ansi(row).cell_len for row in self._rendered.splitlines()]
        self._shown = self._lengths
        return self._rendered

    def erase(self) -> str:
        """Return the codes that erase the rows that were drawn last.

        A terminal that has become narrower has broken them into more rows.
        """
        columns = max(shutil.get_terminal_size().columns, 1)
        rows = sum(max(1, -(-length // columns)) for length in self._shown)
        self._shown = []
        if rows == 0:
            return ""
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _rows(
        self,
        progress: dict[str, TrainingProgress],
        groups: tuple[LiveLine, ...],
        columns: int,
        rows: int,
    ) -> str:
        trainings = list(progress.values())
        if columns < _BAR_COLUMNS or rows < _BAR_ROWS:
            return "" if not trainings else _said(progress)[0][: columns - 1]
        parts: list[Table | Text] = []
        if len(trainings) > 1:
            parts.append(_bars(progress))
        elif trainings:
            parts += [_bar(trainings[0]), _figures(trainings[0])]
        parts += [
            Text(each.standstill, style="yellow", overflow="fold")
            for each in trainings
            if each.standstill
        ]
        with self._console.capture() as captured:
            self._console.print(Group(*parts, *map(_group, groups)), width=columns - 1)
        return "\n".join(captured.get().splitlines()[: rows - _LOG_ROWS])


def _said(progress: Mapping[str, TrainingProgress]) -> list[str]:
    """Return the progress of each training as a line of text, of several with their names."""
    if len(progress) == 1:
        return [str(each) for each in progress.values()]
    return [f"{name}: {each}" for name, each in progress.items()]


def _bar(progress: TrainingProgress) -> Table:
    """Return the bar, with the part that is done, the rate, checkpoints, and the time left."""
    end = [*_rate(progress), counted(progress.checkpoints, "checkpoint")]
    if progress.seconds_left is not None:
        end.append(progress.time_left())
    table = _table_of_bars()
    table.add_row("training", _drawn(progress), "  ".join(end))
    return table


def _bars(progress: Mapping[str, TrainingProgress]) -> Table:
    """Return a bar for each training, with the part that is done, the rate and the return."""
    table = _table_of_bars()
    for name, each in progress.items():
        table.add_row(name, _drawn(each), "  ".join([*_rate(each), each.returns()]))
    return table


def _table_of_bars() -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True)
    return table


def _drawn(progress: TrainingProgress) -> ProgressBar:
    fraction = progress.fraction()
    # Without a last step it has no end: rich draws it without one, too.
    return ProgressBar(total=None if fraction is None else 1.0, completed=fraction or 0.0)


def _rate(progress: TrainingProgress) -> list[str]:
    fraction = progress.fraction()
    done = [] if fraction is None else [f"{fraction:.0%}"]
    return [*done, f"{progress.steps_per_s:,.0f}/s"]


def _figures(progress: TrainingProgress) -> Text:
    """Return as many figures as 80 columns have room for."""
    parts = [progress.steps(), progress.returns()]
    connected = progress.connected()
    if progress.needed_episodes is not None:  # in place of the connections
        parts[-1] += f" ({progress.episodes} of {progress.needed_episodes})"
        connected = counted(progress.environments, "environment")
    if progress.mean_evaluation is not None:
        parts.append(progress.evaluated())
    parts.append(connected)
    return Text(" | ".join(parts), no_wrap=True, overflow="crop")


def _group(line: LiveLine) -> Text:
    figures = " | ".join(map(str, line.figures))
    return Text(f"{line.group:{_NAME_COLUMNS}} {figures}", no_wrap=True, overflow="crop")


class LivePrinter:
    """Prints the output of processes; on a terminal, the training's progress stays below it.

    So does a line for each group of processes; see ``relaax.telemetry.live_lines``.
    All goes into the ``log``, too, and the state of each process into the ``record``.

    When the output cannot be written any more (the terminal was closed, or ``| head`` has ended),
    the processes save and stop as after SIGTERM. Otherwise they would go on training unseen.
    """

    def __init__(
        self, stream: TextIO, log: ProcessLog | None = None, record: RunRecorder | None = None
    ) -> None:
        self._printer = Printer(output=stream, colour=can_draw_on(stream))
        self._stream = stream
        self._log = log
        self._record = record
        self._view = ProgressView(stream) if can_draw_on(stream) else None
        #: The newest progress of each training, by the name of its parameter server.
        self._progress: dict[str, TrainingProgress] = {}
        #: The newest live line of each process, by its name.
        self._lines: dict[str, LiveLine] = {}

    @property
    def interval_s(self) -> float:
        """How many seconds should be between two live lines of a process."""
        return LINES_INTERVAL_S if self._view is None else ROWS_INTERVAL_S

    def make_room_for(self, names: Iterable[str]) -> None:
        """Let the names of processes stand in one column."""
        self._printer.width = max(map(len, names))

    def note_start(self, name: str, group: int, host: str) -> None:
        """Take note of the number of a process that was started."""
        if self._log is not None:
            self._log.pids[name] = group
        if self._record is not None:
            self._record.note_start(name, group, host)

    def note_end(self, name: str, status: int) -> None:
        """Take note of the end of a process."""
        if self._record is not None:
            self._record.note_end(name, status)

    def note_decided_by(self, name: str) -> None:
        """Take note of the process whose end is the end of all."""
        if self._record is not None:
            self._record.note_decided_by(name)

    def write(self, message: Any) -> None:
        """Print one message of a process, and write it into the log."""
        data = message.data
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        state = state_in(text.rstrip())
        if state is not None:
            text = str(state)
            if self._record is not None:
                self._record.note_progress(message.name, text)
        elif self._record is not None:
            for line in text.splitlines():
                self._record.note_line(message.name, line)
        if self._log is not None:
            for line in text.splitlines():
                self._log.write(message.name, message.time, line, is_state=state is not None)
        try:
            self._print(message._replace(data=text), state)
        except OSError:
            self._discard_further_output()
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Print the last progress as lines of its own, in the place of the rows that showed it."""
        if self._view is None:
            return
        last = [*map(str, self._groups()), *_said(dict(sorted(self._progress.items())))]
        if last:
            print(f"{self._view.erase()}{chr(10).join(last)}", file=self._stream, flush=True)
        self._progress.clear()
        self._lines.clear()

    def _print(self, message: Any, state: TrainingProgress | LiveLine | None) -> None:
        if self._view is None:
            self._printer.write(message)
            return
        self._stream.write(self._view.erase())
        match state:
            case TrainingProgress():
                self._progress[message.name] = state
            case LiveLine():
                self._lines[message.name] = state
            case None:
                self._printer.write(message)
        drawn = self._view.draw(self._progress, self._groups())
        print(drawn, end="", file=self._stream, flush=True)

    def _groups(self) -> list[LiveLine]:
        """Return a line for each group, made of the newest ones of its processes."""
        lines = self._lines.values()
        groups = dict.fromkeys([*GROUPS, *(line.group for line in lines)])
        of_groups = [[line for line in lines if line.group == group] for group in groups]
        return [combined(lines) for lines in of_groups if lines]

    def _discard_further_output(self) -> None:
        """Redirect the stream to the null device, so that later writes and flushes succeed."""
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, self._stream.fileno())
        os.close(null_device)
