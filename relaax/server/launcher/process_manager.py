"""honcho's manager, with more time for processes to save."""

import time
from typing import Any

from honcho.manager import Manager

#: How long a process may take to exit after SIGTERM. honcho's own limit is 5 seconds after the exit
#: of the first process, which is too short for the upload of a large checkpoint to S3.
GRACE_S = 30.0


class ProcessManager(Manager):  # type: ignore[misc]  # honcho has no types
    """Runs processes. When one exits, or after SIGINT or SIGTERM, it stops all and waits."""

    def __init__(self, printer: Any) -> None:
        super().__init__(printer)
        self._kill_at: float | None = None

    def terminate(self) -> None:
        """Send SIGTERM to all processes."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE_S
        super().terminate()

    def kill(self) -> None:
        """Kill the processes that still run after GRACE_S; honcho calls this repeatedly."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            super().kill()

    def exit_status(self) -> int:
        """Return the status as a shell would: 128 + N for a process that signal N has ended."""
        code = int(self.returncode)
        return 128 - code if code < 0 else code
