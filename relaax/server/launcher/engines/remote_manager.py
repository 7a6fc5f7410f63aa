"""honcho's manager for processes on other machines: a thread looks after each."""

import queue
import signal
import threading
from functools import partial
from typing import Any

from relaax.server.launcher.engines.remote_process import Cluster, Pid, RemoteProcess
from relaax.server.launcher.process_manager import ProcessManager


class RemoteManager(ProcessManager):
    """Runs processes of a cluster as ``ProcessManager`` does those of this machine."""

    def __init__(self, printer: Any, cluster: Cluster, restarts: bool = False) -> None:
        super().__init__(printer, restarts, queue.Queue())
        self._process_ctor = partial(RemoteProcess, cluster=cluster)
        self._procmgr = _Signals()
        cluster.on_change = self._start_again

    def _begin(self, name: str) -> Any:
        process = self._processes[name]["obj"]
        target = process.run
        self._processes[name]["pid"] = process.pid(0)  # there may be signals before it has started
        thread = threading.Thread(name=name, target=target, args=(self.events, True), daemon=True)
        thread.start()
        return thread

    def _start_again(self, name: str) -> None:
        self._processes[name]["obj"].start_again()


class _Signals:
    """What sends signals for honcho."""

    def terminate(self, pid: Pid) -> None:
        """Let a process save and end."""
        pid.process.send(signal.SIGTERM)

    def kill(self, pid: Pid) -> None:
        """End a process."""
        pid.process.send(signal.SIGKILL)
