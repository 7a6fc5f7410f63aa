"""honcho's printer, with one live line below the log."""

from typing import Any

from honcho.printer import Printer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from relaax.server.parameter_server.progress import PREFIX


class LivePrinter(Printer):  # type: ignore[misc]  # honcho has no types
    """Prints what processes say; on a terminal, the progress of the training stays in one line."""

    def __init__(self, console: Console) -> None:
        super().__init__(output=console.file)
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        if console.is_terminal:
            self._live.start()

    def write(self, message: Any) -> None:
        """Print one message of a process."""
        data = message.data
        line = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        if self._console.is_terminal and line.startswith(PREFIX):
            self._live.update(Text(line.rstrip()), refresh=True)
        else:
            super().write(message)

    def close(self) -> None:
        """Leave the last progress line where it is."""
        self._live.stop()
