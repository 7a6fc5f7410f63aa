"""One process of a Procfile, which does not outlive the launcher."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from honcho.process import Process

#: How often the launcher is looked at.
_INTERVAL_S = 0.2


#: Lets a process save and end, given its name and its process group.
Stop = Callable[[str, int], None]


def send_to_group(group: int, number: signal.Signals) -> None:
    """Send a signal to all of a process group, if there is any."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def terminate(name: str, group: int) -> None:
    """Send SIGTERM to all of a process group."""
    send_to_group(group, signal.SIGTERM)


class LaunchedProcess(Process):  # type: ignore[misc]  # honcho has no types
    """honcho's process: a command, and beside it a small process that reads what it prints.

    When the launcher is killed, that one stops the command as the launcher would: with
    ``stop``, and with SIGKILL what is left of it ``grace_s`` seconds later.
    """

    def __init__(
        self, *arguments: Any, grace_s: float, stop: Stop = terminate, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._grace_s = grace_s
        self._stop = stop

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        """Start the command, and return when it has ended."""
        threading.Thread(target=self._end_with, args=(os.getppid(),), daemon=True).start()
        super().run(events, ignore_signals)

    def _end_with(self, parent: int) -> None:
        launcher = multiprocessing.parent_process()
        # Forked processes hold the other end of each other's sentinel, so is_alive is no help to
        # them; a forkserver, which is the parent where there is one, outlives the launcher.
        while os.getppid() == parent and (launcher is None or launcher.is_alive()):
            time.sleep(_INTERVAL_S)
        deadline = time.monotonic() + self._grace_s
        self._stop(self.name, self._group())
        while self._runs() and time.monotonic() < deadline:
            time.sleep(_INTERVAL_S)
        send_to_group(self._group(), signal.SIGKILL)
        os._exit(1)  # nobody reads the queue any more: an ordinary exit would wait for that

    def _runs(self) -> bool:
        """Return whether anything of the command's process group is there."""
        try:
            os.killpg(self._group(), 0)
        except ProcessLookupError:
            return False
        return True

    def _group(self) -> int:
        """Return the number of the command's process group; honcho gives it one of its own."""
        while self._child is None:  # it is being started
            time.sleep(_INTERVAL_S)
        return int(self._child.pid)
