"""The RLX server: accepts connections and forks a worker for each."""

import gc
import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

from relaax.common.address import Address
from relaax.server.rlx_server.admission import Admission
from relaax.server.rlx_server.children import Children, Ended
from relaax.server.rlx_server.processes import (
    TRAINING_IS_OVER,
    WorkerSettings,
    run_worker,
    watch_parameter_server,
)

_log = logging.getLogger(__name__)

BACKLOG = 1024

#: How often the loop looks around when nothing happens.
POLL_S = 1.0

#: Pause after a failed accept: the listener stays ready, and the loop must not spin.
ACCEPT_RETRY_S = 0.1

#: How long after its start a watcher that failed is started again, at the earliest.
WATCHER_RESTART_S = 1.0


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at ``address``; OSError when the port is in use."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    listener.setblocking(False)
    return listener


class RlxServer:
    """Listens, admits, forks, reaps; ends with SIGINT, SIGTERM, or the training."""

    def __init__(
        self, listener: socket.socket, settings: WorkerSettings, admission: Admission
    ) -> None:
        self._listener = listener
        self._settings = settings
        self._admission = admission
        self._children = Children()
        self._watcher_pid: int | None = None
        self._watcher_due = 0.0
        self._workers_started = 0
        self._stops = False

    def run(self) -> None:
        """Serve until stopped; every child is gone when this returns."""
        gc.collect()
        gc.freeze()  # a collection in a child would copy the pages it shares with its parent
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._install_signals()
        try:
            self._loop()
        finally:
            self._listener.close()
            self._children.stop()
            signal.set_wakeup_fd(-1)
            self._wake_reader.close()
            self._wake_writer.close()

    def _install_signals(self) -> None:
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        _log.info("stopping: %s", signal.Signals(number).name)
        self._stops = True

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            while not self._stops:
                self._keep_watching()
                ready = {key.fileobj for key, _ in selector.select(POLL_S)}
                if self._wake_reader in ready:
                    self._wake_reader.recv(4096)
                for ended in self._children.reap():
                    self._note_end(ended)
                if self._listener in ready and not self._stops:
                    self._accept()

    def _keep_watching(self) -> None:
        if self._watcher_pid is None and time.monotonic() >= self._watcher_due:
            self._watcher_due = time.monotonic() + WATCHER_RESTART_S
            self._watcher_pid = self._fork("watcher of the parameter server", self._watch)

    def _note_end(self, ended: Ended) -> None:
        if ended.pid == self._watcher_pid:
            self._watcher_pid = None
            if ended.exit_code == TRAINING_IS_OVER:
                _log.info("the training is over")
                self._stops = True
                return
        if ended.exit_code < 0:
            name = signal.Signals(-ended.exit_code).name
            _log.warning("%s (pid %d) was killed by %s", ended.name, ended.pid, name)
        elif ended.exit_code > 0:
            _log.warning("%s (pid %d) ended with status %d", ended.name, ended.pid, ended.exit_code)
        else:
            _log.info("%s (pid %d) ended", ended.name, ended.pid)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError as error:  # the client has left again, or no file descriptor is free
            _log.warning("could not accept a connection: %s", error)
            time.sleep(ACCEPT_RETRY_S)
            return
        with connection:
            self._admit(connection, f"{address[0]}:{address[1]}")

    def _admit(self, connection: socket.socket, peer: str) -> None:
        """Fork a worker if the client may stay; access control will stand here too."""
        decision = self._admission.decide(
            pid for pid in self._children.pids if pid != self._watcher_pid
        )
        if not decision.is_admitted:
            _log.warning("sending %s away: %s", peer, decision)
            return
        connection.setblocking(True)
        pid = self._fork(f"worker of {peer}", lambda: self._serve(connection, peer))
        if pid is not None:
            self._workers_started += 1
            _log.info("worker %d serves %s", pid, peer)

    def _watch(self) -> int:
        self._release_inherited()
        return watch_parameter_server(self._settings)

    def _serve(self, connection: socket.socket, peer: str) -> int:
        self._release_inherited()
        return run_worker(self._settings, self._workers_started, connection, peer)

    def _release_inherited(self) -> None:
        for inherited in (self._listener, self._wake_reader, self._wake_writer):
            inherited.close()

    def _fork(self, name: str, function: Callable[[], int]) -> int | None:
        try:
            return self._children.fork(name, function)
        except OSError as error:
            _log.error("could not start a %s: %s", name, error)
            return None
