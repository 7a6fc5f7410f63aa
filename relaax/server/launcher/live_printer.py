"""honcho's printer, with one live line below the log."""

import os
import signal
from typing import Any, TextIO

from honcho.printer import Printer

from relaax.server.parameter_server.progress import ERASE_LINE, PREFIX, in_one_row


class LivePrinter(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints the output of processes; on a terminal, the training's progress stays in one line.

    When the output cannot be written any more (the terminal was closed, or ``| head`` has ended),
    the processes save and stop as after SIGTERM. Otherwise they would go on training unseen.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(output=stream)
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._progress = ""

    def write(self, message: Any) -> None:
        """Print one message of a process."""
        try:
            self._print(message)
        except OSError:
            self._discard_further_output()
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Print the last progress as a line of its own."""
        if self._progress:
            print(f"{ERASE_LINE}{self._progress}", file=self._stream, flush=True)
            self._progress = ""

    def _print(self, message: Any) -> None:
        data = message.data
        line = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        if not self._is_terminal:
            super().write(message)
        elif line.startswith(PREFIX):
            self._progress = line.rstrip()
            self._draw()
        else:
            print(ERASE_LINE, end="", file=self._stream)
            super().write(message)
            self._draw()

    def _draw(self) -> None:
        row = ERASE_LINE + in_one_row(self._progress)
        print(row, end="", file=self._stream, flush=True)

    def _discard_further_output(self) -> None:
        """Redirect the stream to the null device, so that later writes and flushes succeed."""
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, self._stream.fileno())
        os.close(null_device)
