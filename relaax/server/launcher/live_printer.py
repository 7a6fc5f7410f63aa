"""honcho's printer, with the training's progress and its groups of processes below the log."""

import os
import signal
from typing import Any, TextIO

from honcho.printer import Printer

from relaax.live_lines import GROUPS, LiveLine, combined
from relaax.server.launcher.process_log import ProcessLog
from relaax.server.launcher.progress_view import ProgressView
from relaax.server.parameter_server.progress import PREFIX, can_draw_on

#: Seconds between two live lines of a process: as rows that are drawn again, and as lines.
ROWS_INTERVAL_S, LINES_INTERVAL_S = 2.0, 10.0


class LivePrinter(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints the output of processes; on a terminal, the training's progress stays below it.

    So does a line for each group of processes, such as learners; see ``relaax.live_lines``. All
    goes into the ``log``, too.

    When the output cannot be written any more (the terminal was closed, or ``| head`` has ended),
    the processes save and stop as after SIGTERM. Otherwise they would go on training unseen.
    """

    def __init__(self, stream: TextIO, log: ProcessLog | None = None) -> None:
        super().__init__(output=stream, colour=can_draw_on(stream))
        self._stream = stream
        self._log = log
        self._view = ProgressView(stream) if can_draw_on(stream) else None
        self._progress = ""
        #: The newest live line of each process, by its name.
        self._lines: dict[str, LiveLine] = {}

    @property
    def interval_s(self) -> float:
        """How many seconds should be between two live lines of a process."""
        return LINES_INTERVAL_S if self._view is None else ROWS_INTERVAL_S

    def write(self, message: Any) -> None:
        """Print one message of a process, and write it into the log."""
        data = message.data
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        if self._log is not None:
            for line in text.splitlines():
                self._log.write(message.name, message.time, line)
        try:
            self._print(message, text.rstrip())
        except OSError:
            self._discard_further_output()
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Print the last progress as lines of its own, in the place of the rows that showed it."""
        if self._view is None:
            return
        last = [*map(str, self._groups()), *([self._progress] if self._progress else [])]
        if last:
            print(f"{self._view.erase()}{chr(10).join(last)}", file=self._stream, flush=True)
        self._progress = ""
        self._lines.clear()

    def _print(self, message: Any, line: str) -> None:
        if self._view is None:
            super().write(message)
            return
        self._stream.write(self._view.erase())
        if not self._keep(message.name, line):
            super().write(message)
        drawn = self._view.draw(self._progress, self._groups())
        print(drawn, end="", file=self._stream, flush=True)

    def _keep(self, process: str, line: str) -> bool:
        """Keep a line that is shown below the log; return False if it belongs to the log."""
        if line.startswith(PREFIX):
            self._progress = line
            return True
        live = LiveLine.parse(line)
        if live is not None:
            self._lines[process] = live
        return live is not None

    def _groups(self) -> list[LiveLine]:
        """Return a line for each group, made of the newest ones of its processes."""
        of_groups = [
            [line for line in self._lines.values() if line.group == group] for group in GROUPS
        ]
        return [combined(lines) for lines in of_groups if lines]

    def _discard_further_output(self) -> None:
        """Redirect the stream to the null device, so that later writes and flushes succeed."""
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, self._stream.fileno())
        os.close(null_device)
