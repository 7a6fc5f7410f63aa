"""honcho's manager, with time for processes to save."""

import time
from typing import Any

from honcho.manager import Manager

#: How long a process may take to end after SIGTERM. honcho's own 5 seconds, counted from the end
#: of the first process, would cut off a large checkpoint on its way to S3.
GRACE_S = 30.0


class ProcessManager(Manager):  # type: ignore[misc]  # honcho has no types
    """Runs processes; when one ends, or on SIGINT or SIGTERM, it stops all and waits for them."""

    def __init__(self, printer: Any) -> None:
        super().__init__(printer)
        self._kill_at: float | None = None

    def terminate(self) -> None:
        """Ask all processes to end."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE_S
        super().terminate()

    def kill(self) -> None:
        """Kill what has not ended in its time; honcho calls this over and over while it waits."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            super().kill()

    def exit_status(self) -> int:
        """Return what a shell would say: 128 + N for a process that signal N has ended."""
        code = int(self.returncode)
        return 128 - code if code < 0 else code
