"""The training's progress as rows of a terminal."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import TextIO

from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from relaax.live_lines import GROUPS, LiveLine
from relaax.server.parameter_server.progress import TrainingProgress, counted

#: A bar needs so many columns, and so many rows beside those of the log.
_BAR_COLUMNS, _BAR_ROWS = 50, 6

#: Columns of the name of a group.
_NAME_COLUMNS = max(map(len, GROUPS))


class ProgressView:
    """Draws a progress line below the log: a bar and the figures, or one row where space is short.

    Below them is a row for each group of processes, as far as there is room.

    What it returns is text for the terminal that ``stream`` is. Rows are cut to the width, so that
    they can be erased again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        #: What was rendered last, and what for: a log of many lines draws the same rows again.
        self._rendered_for: tuple[str, tuple[LiveLine, ...], int, int] | None = None
        self._rendered, self._lengths = "", [0]
        #: Lengths of the rows that are on the terminal.
        self._shown: list[int] = []

    def draw(self, line: str, groups: Sequence[LiveLine] = ()) -> str:
        """Return the rows that show ``line`` and ``groups``; nothing where there is nothing."""
        columns, rows = shutil.get_terminal_size()
        wanted = (line, tuple(groups), columns, rows)
        if self._rendered_for != wanted:
            self._rendered_for = wanted
            self._rendered = self._rows(*wanted)
            self._lengths = [Text.from_ansi(row).cell_len for row in self._rendered.splitlines()]
        self._shown = self._lengths
        return self._rendered

    def erase(self) -> str:
        """Return what erases the rows that were drawn last.

        A terminal that has become narrower has broken them into more rows.
        """
        columns = max(shutil.get_terminal_size().columns, 1)
        rows = sum(max(1, -(-length // columns)) for length in self._shown)
        self._shown = []
        if rows == 0:
            return ""
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _rows(self, line: str, groups: tuple[LiveLine, ...], columns: int, rows: int) -> str:
        progress = TrainingProgress.parse(line)
        has_space = columns >= _BAR_COLUMNS and rows >= _BAR_ROWS
        if not has_space or (progress is None and not groups):
            return line[: columns - 1]
        head = [Text(line, no_wrap=True, overflow="crop")] if line else []
        parts = head if progress is None else [_bar(progress), _figures(progress)]
        below = [_group(group) for group in groups[: max(0, rows - _BAR_ROWS)]]
        with self._console.capture() as captured:
            self._console.print(Group(*parts, *below), width=columns - 1)
        return captured.get().rstrip("\n")


def _bar(progress: TrainingProgress) -> Table:
    """Return the bar, with the part that is done, the rate, checkpoints, and the time left."""
    fraction = progress.fraction()
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column()
    table.add_column(ratio=1)
    table.add_column(justify="right", no_wrap=True)
    end = [f"{progress.steps_per_s:,.0f}/s"]
    if fraction is not None:
        end.insert(0, f"{fraction:.0%}")
    end.append(counted(progress.checkpoints, "checkpoint"))
    if progress.seconds_left is not None:
        end.append(progress.time_left())
    # Without a last step it has no end: rich draws it without one, too.
    bar = ProgressBar(total=None if fraction is None else 1.0, completed=fraction or 0.0)
    table.add_row("training", bar, "  ".join(end))
    return table


def _figures(progress: TrainingProgress) -> Text:
    """Return what 80 columns have room for: steps, return, environments and connections."""
    parts = [progress.steps(), progress.returns()]
    if progress.needed_episodes is not None:  # instead of the connections
        parts[-1] += f" ({progress.episodes} of {progress.needed_episodes})"
        progress = replace(progress, connections=None)
    if progress.mean_evaluation is not None:
        parts.append(progress.evaluated())
    if progress.environments is not None:
        parts.append(progress.connected())
    return Text(" | ".join(parts), no_wrap=True, overflow="crop")


def _group(line: LiveLine) -> Text:
    figures = " | ".join(map(str, line.figures))
    return Text(f"{line.group:{_NAME_COLUMNS}} {figures}", no_wrap=True, overflow="crop")
