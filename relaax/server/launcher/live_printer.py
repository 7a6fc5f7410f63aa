"""honcho's printer, with the training's progress below the log."""

import os
import signal
from typing import Any, TextIO

from honcho.printer import Printer

from relaax.server.launcher.progress_view import ProgressView
from relaax.server.parameter_server.progress import PREFIX, can_draw_on


class LivePrinter(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints the output of processes; on a terminal, the training's progress stays below it.

    When the output cannot be written any more (the terminal was closed, or ``| head`` has ended),
    the processes save and stop as after SIGTERM. Otherwise they would go on training unseen.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(output=stream, colour=can_draw_on(stream))
        self._stream = stream
        self._view = ProgressView(stream) if can_draw_on(stream) else None
        self._progress = ""

    def write(self, message: Any) -> None:
        """Print one message of a process."""
        try:
            self._print(message)
        except OSError:
            self._discard_further_output()
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Print the last progress as a line of its own, in the place of the rows that showed it."""
        if self._progress and self._view is not None:
            print(f"{self._view.erase()}{self._progress}", file=self._stream, flush=True)
            self._progress = ""

    def _print(self, message: Any) -> None:
        data = message.data
        line = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        if self._view is None:
            super().write(message)
            return
        self._stream.write(self._view.erase())
        if line.startswith(PREFIX):
            self._progress = line.rstrip()
        else:
            super().write(message)
        print(self._view.draw(self._progress), end="", file=self._stream, flush=True)

    def _discard_further_output(self) -> None:
        """Redirect the stream to the null device, so that later writes and flushes succeed."""
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, self._stream.fileno())
        os.close(null_device)
