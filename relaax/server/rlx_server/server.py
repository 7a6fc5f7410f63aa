"""The RLX server: accepts connections and forks a worker for each."""

import gc
import logging
import selectors
import signal
import socket
import time
import zlib
from collections.abc import Callable
from types import FrameType

from relaax.address import Address
from relaax.server.rlx_server.admission import Admission
from relaax.server.rlx_server.children import (
    COMPUTE_IS_GONE,
    END_OF_TRAINING,
    STOP,
    Children,
    Ended,
)
from relaax.server.rlx_server.compute.link import Link
from relaax.server.rlx_server.compute.supervisor import ComputeSupervisor
from relaax.server.rlx_server.processes import (
    CONFIGURATION_IS_WRONG,
    TRAINING_IS_OVER,
    ComputeEnd,
    WorkerSettings,
    run_compute,
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
    """Listens, admits, forks, reaps; ends with SIGINT, SIGTERM, or the training.

    With ``is_batched`` the network runs in a compute process; clients wait in the listener's
    queue while there is none that is ready.
    """

    def __init__(
        self,
        listener: socket.socket,
        settings: WorkerSettings,
        admission: Admission,
        is_batched: bool = False,
    ) -> None:
        self._listener = listener
        host, port = listener.getsockname()[:2]
        self._address = Address(host, port)
        self._settings = settings
        self._admission = admission
        self._children = Children()
        self._watcher_pid: int | None = None
        self._watcher_due = 0.0
        #: The last one given to a process that makes agents; no two servers give the same ones.
        self._worker_number = zlib.crc32(f"{socket.gethostname()} {self._address}".encode()) << 32
        self._compute = ComputeSupervisor(self._children, self._run_compute) if is_batched else None
        self._stops = False
        self._is_over = False
        self._exit_status = 0

    def run(self) -> int:
        """Serve until stopped and return the exit status; every child is gone by then."""
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
            self._end_children(END_OF_TRAINING if self._is_over else STOP)
            signal.set_wakeup_fd(-1)
            self._wake_reader.close()
            self._wake_writer.close()
        return self._exit_status

    def _end_children(self, number: signal.Signals) -> None:
        """End the workers, and then the compute process, which they must not miss meanwhile."""
        self._children.end([self._watcher_pid or 0, *self._workers()], number)
        if self._compute is not None:
            self._compute.close()  # it ends by itself, and stores its last metrics
            self._children.wait(self._children.pids)
        self._children.stop()

    def _workers(self) -> list[int]:
        others = {self._watcher_pid, None if self._compute is None else self._compute.pid}
        return [pid for pid in self._children.pids if pid not in others]

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
            selector.register(self._wake_reader, selectors.EVENT_READ)
            if self._compute is None:
                self._open(selector)
            while not self._stops:
                self._keep_watching()
                self._keep_computing(selector)
                ready = {key.fileobj for key, _ in selector.select(POLL_S)}
                if self._wake_reader in ready:
                    self._wake_reader.recv(4096)
                if self._compute is not None and self._compute in ready:
                    self._listen_to_compute(selector, self._compute)
                for ended in self._children.reap():
                    self._note_end(ended)
                if self._listener in ready and not self._stops:
                    self._accept()

    def _open(self, selector: selectors.BaseSelector) -> None:
        selector.register(self._listener, selectors.EVENT_READ)
        _log.info("serving at %s", self._address)

    def _keep_computing(self, selector: selectors.BaseSelector) -> None:
        if self._compute is not None and self._compute.start_if_due():
            self._worker_number += 1
            selector.register(self._compute, selectors.EVENT_READ)

    def _listen_to_compute(
        self, selector: selectors.BaseSelector, compute: ComputeSupervisor
    ) -> None:
        """Admit clients while the compute process is ready."""
        was_ready = compute.is_ready
        compute.listen()
        if compute.is_ready and not was_ready:
            self._open(selector)
        if compute.is_lost:
            selector.unregister(compute)
            if was_ready:
                selector.unregister(self._listener)
            compute.close()
            self._part_from_clients()

    def _part_from_clients(self) -> None:
        """Let workers close their connections; one that waits for its client would not notice."""
        workers = self._workers()
        if workers:
            _log.warning("closing connections (%d): the compute process is gone", len(workers))
            self._children.tell(workers, COMPUTE_IS_GONE)

    def _keep_watching(self) -> None:
        if self._watcher_pid is None and time.monotonic() >= self._watcher_due:
            self._watcher_due = time.monotonic() + WATCHER_RESTART_S
            self._watcher_pid = self._fork("watcher of the parameter server", self._watch)

    def _note_end(self, ended: Ended) -> None:
        if self._compute is not None and ended.pid == self._compute.pid:
            self._compute.note_end()
            if ended.exit_code == CONFIGURATION_IS_WRONG:
                self._stops, self._exit_status = True, CONFIGURATION_IS_WRONG
        if ended.pid == self._watcher_pid:
            self._watcher_pid = None
            if ended.exit_code == TRAINING_IS_OVER:
                _log.info("the training is over")
                self._stops = self._is_over = True
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
        decision = self._admission.decide(self._workers())
        if not decision.is_admitted:
            _log.warning("sending %s away: %s", peer, decision)
            return
        connection.setblocking(True)
        if self._compute is None:
            pid = self._fork(f"worker of {peer}", lambda: self._serve(connection, peer, None))
        else:
            pid = self._fork_introduced(self._compute, connection, peer)
        if pid is not None:
            _log.info("worker %d serves %s", pid, peer)

    def _fork_introduced(
        self, compute: ComputeSupervisor, connection: socket.socket, peer: str
    ) -> int | None:
        try:
            link, doorbell = compute.introduce()
        except OSError as error:
            _log.warning("sending %s away: the compute process does not answer: %s", peer, error)
            return None
        with link:
            end = ComputeEnd(Link(link), doorbell)
            return self._fork(f"worker of {peer}", lambda: self._serve(connection, peer, end))

    def _run_compute(self, introductions: socket.socket, doorbell: int) -> int:
        self._release_inherited()
        return run_compute(self._settings, self._worker_number, introductions, doorbell)

    def _watch(self) -> int:
        self._release_inherited()
        return watch_parameter_server(self._settings)

    def _serve(self, connection: socket.socket, peer: str, compute: ComputeEnd | None) -> int:
        self._release_inherited()
        return run_worker(self._settings, self._worker_number, connection, peer, compute)

    def _release_inherited(self) -> None:
        for inherited in (self._listener, self._wake_reader, self._wake_writer):
            inherited.close()
        if self._compute is not None:
            self._compute.release_inherited()

    def _fork(self, name: str, function: Callable[[], int]) -> int | None:
        self._worker_number += 1
        try:
            return self._children.fork(name, function)
        except OSError as error:
            _log.error("could not start a %s: %s", name, error)
            return None
