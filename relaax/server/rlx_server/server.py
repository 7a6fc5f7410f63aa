"""The RLX server: accepts connections, admits them, and gives each to a worker."""

import gc
import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

from relaax.address import Address, host_of, peer_of
from relaax.processes.available_memory import AvailableMemory
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.children import END_OF_TRAINING, STOP, Children, ExitedChild, Watchdog
from relaax.server.rlx_server.connection_workers import ConnectionWorkers
from relaax.server.rlx_server.limits import ConnectionLimits
from relaax.server.rlx_server.lobby import Lobby
from relaax.server.rlx_server.shared_workers import SharedWorkers
from relaax.server.rlx_server.tally import Cell, Row
from relaax.server.rlx_server.watcher import PARAMETER_SERVER_IS_GONE, TRAINING_IS_OVER
from relaax.telemetry.live_lines import Figure, LiveLineWriter
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)

#: How often the loop looks around when nothing happens.
POLL_S = 1.0

#: The same while connections are let go: nothing wakes the loop when the last of them has left.
DRAIN_POLL_S = 0.05

#: How often the server takes note of how it and its workers are.
LOOK_AROUND_S = 1.0

#: How many connections are accepted before the loop looks around again.
ACCEPTED_AT_ONCE = 64

#: Pause after a failed accept: the listener stays ready, and the loop must not spin.
ACCEPT_RETRY_S = 0.1

#: How long after its start a watcher that failed is started again, at the earliest.
WATCHER_RESTART_S = 1.0


Workers: TypeAlias = ConnectionWorkers | SharedWorkers
"""The processes that serve connections."""


class RlxServer:
    """Listens, admits, reaps; ends with SIGINT, SIGTERM, or the training.

    ``watch`` runs in the watcher of the parameter server; only that process keeps ``operators``, a
    listener, open. Some workers take connections as they come; others, when they have proved in the
    ``lobby`` that they may be served. Refused connections stay there until their client can
    understand the reason. While no worker can take connections, clients wait in the listener's
    queue. All events are counted in ``state``, which the watcher reads. The result of ``served`` is
    shown in the live line, too.

    With SIGTERM it drains: it takes no more connections, and ends when all have been closed, each
    at the end of an episode, or after ``drain_s`` seconds, or with the next signal. It does not
    wait for a parameter server that is away. A worker that hangs by ``watchdog`` is killed.
    """

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        children: Children,
        workers: Workers,
        watch: Callable[[], int],
        state: Row,
        watchdog: Watchdog,
        drain_s: float,
        limits: ConnectionLimits,
        lobby: Lobby,
        operators: socket.socket | None = None,
        served: Callable[[], list[Figure]] = list,
    ) -> None:
        self._state = state
        self._watchdog = watchdog
        self._drain_s = drain_s
        self._limits = limits
        self._lobby = lobby
        self._operators = operators
        self._served = served
        self._available = AvailableMemory()
        self._note_at = 0.0
        #: Whether to drain, and until when, once that has begun.
        self._drains = False
        self._drain_until: float | None = None
        self._listener = listener
        host, port = listener.getsockname()[:2]
        self._address = Address(host, port)
        self._selector = selector
        self._children = children
        self._workers = workers
        self._watch = watch
        self._watcher_pid: int | None = None
        self._watcher_due = 0.0
        self._is_listening = False
        self._stops = False
        self._is_over = False
        self._exit_status = 0
        self._live_line = LiveLineWriter("RLX server", self._figures)

    def run(self) -> int:
        """Serve until stopped and return the exit status; every child is gone by then."""
        gc.collect()
        gc.freeze()  # a collection in a child would copy the pages it shares with its parent
        self._wake_reader, self._wake_writer = socket.socketpair()
        for end in (self._wake_reader, self._wake_writer):
            end.setblocking(False)
        self._children.parents_own(self._listener, self._wake_reader, self._wake_writer)
        if self._operators is not None:
            self._children.parents_own(self._operators)
        self._children.parents_own(self._lobby)
        self._selector.register(self._lobby, selectors.EVENT_READ, self._take_from_lobby)
        self._install_signals()
        try:
            self._loop()
        finally:
            self._listener.close()
            if self._operators is not None:
                self._operators.close()
            self._lobby.turn_away()
            self._lobby.close()
            self._children.stop(END_OF_TRAINING if self._is_over else STOP)
            signal.set_wakeup_fd(-1)
            self._wake_reader.close()
            self._wake_writer.close()
        return self._exit_status

    def _install_signals(self) -> None:
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGTERM and not self._drains and self._drain_s > 0:
            _log.info("%s: letting connections go", name)
            self._drains = True
        else:
            _log.info("stopping: %s", name)
            self._stops = True

    def _loop(self) -> None:
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._wake)
        self._look_around()  # the watcher, which is started next, serves it to operators
        while not self._stops:
            self._keep_watching()
            if self._drains:
                self._drain()
            else:
                self._workers.start_due()
                self._listen_if_open()
            for key, _ in self._selector.select(DRAIN_POLL_S if self._drains else POLL_S):
                key.data()
            for exited in self._children.reap():
                self._note_exit(exited)
            self._look_around()
            self._live_line.write_if_due()

    def _figures(self) -> list[Figure]:
        return [
            Figure(len(self._workers.pids), "workers"),
            Figure(self._state[Cell.ACCEPTED], "connections accepted"),
            Figure(self._refused(), "connections refused"),
            Figure(self._state[Cell.WORKERS_LOST], "workers lost"),
            *self._served(),
        ]

    def _refused(self) -> float:
        cells = (Cell.REFUSED_FOR_MEMORY, Cell.REFUSED_FOR_LIMIT, Cell.REFUSED_WITHOUT_WORKER)
        return sum(self._state[cell] for cell in cells)

    def _look_around(self) -> None:
        """Take note of how things are, and kill workers that hang, once a second."""
        now = time.monotonic()
        if now < self._note_at:
            return
        self._note_at = now + LOOK_AROUND_S
        self._state.note_now(Cell.LOOKED_AROUND)
        self._take_from_lobby(looks_at_all=True)
        self._state[Cell.AVAILABLE] = self._available.bytes()
        for pid in self._watchdog.hung(self._workers.turns):
            _log.warning(
                "worker %d has hung for more than %g s: killed", pid, self._watchdog.timeout_s
            )
            self._state.add(Cell.WORKERS_HUNG)
            self._children.send_signal([pid], signal.SIGKILL)

    def _drain(self) -> None:
        """Begin to drain, or look whether that is done."""
        now = time.monotonic()
        if self._drain_until is None:
            self._drain_until = now + self._drain_s
            self._state[Cell.DRAINS] = 1
            self._listen(False)
            self._children.no_longer_open(self._listener)
            self._listener.close()
            self._lobby.turn_away()
            self._workers.drain()
        state = self._state
        is_away = state[Cell.PARAMETER_SERVER_WAS_AWAY] > state[Cell.PARAMETER_SERVER_ANSWERED]
        if now >= self._drain_until:
            _log.warning("closing connections that did not leave within %g s", self._drain_s)
        self._stops = self._stops or self._workers.are_idle or is_away or now >= self._drain_until

    def _wake(self) -> None:
        self._wake_reader.recv(4096)

    def _listen_if_open(self) -> None:
        self._listen(self._workers.is_open)
        self._heed_listener(self._is_listening and self._workers.has_room)

    def _listen(self, is_open: bool) -> None:
        """Take connections, or let them wait."""
        if is_open == self._is_listening:
            return
        self._is_listening = is_open
        self._state[Cell.LISTENS] = is_open
        self._heed_listener(is_open)
        if is_open:
            _log.info("serving at %s", self._address)

    def _heed_listener(self, heeds: bool) -> None:
        """Accept the connections that come, or let them wait in the listener's queue."""
        if heeds == (self._listener in self._selector.get_map()):
            return
        if heeds:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        else:
            self._selector.unregister(self._listener)

    def _keep_watching(self) -> None:
        if self._watcher_pid is None and time.monotonic() >= self._watcher_due:
            self._watcher_due = time.monotonic() + WATCHER_RESTART_S
            try:
                self._watcher_pid = self._children.fork(
                    "watcher of the parameter server", self._watch, keeps=self._operators
                )
            except OSError as error:
                _log.error("could not start a watcher of the parameter server: %s", error)

    def _note_exit(self, exited: ExitedChild) -> None:
        if exited.exit_code != 0 and exited.pid != self._watcher_pid:
            self._state.add(Cell.WORKERS_LOST)
        status = self._workers.note_exit(exited)
        if status is not None:
            self._stops, self._exit_status = True, status
        if exited.pid == self._watcher_pid:
            self._watcher_pid = None
            if exited.exit_code == TRAINING_IS_OVER:
                _log.info("the training is over")
                self._stops = self._is_over = True
                return
            if exited.exit_code == PARAMETER_SERVER_IS_GONE:
                self._stops, self._exit_status = True, 1
        if exited.exit_code < 0:
            name = signal.Signals(-exited.exit_code).name
            _log.warning("%s (pid %d) was killed by %s", exited.name, exited.pid, name)
        elif exited.exit_code > 0:
            _log.warning(
                "%s (pid %d) ended with status %d", exited.name, exited.pid, exited.exit_code
            )
        else:
            _log.info("%s (pid %d) ended", exited.name, exited.pid)

    def _accept(self) -> None:
        """Admit the connections that wait."""
        for _ in range(ACCEPTED_AT_ONCE):
            if not self._workers.has_room:
                return
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # the client has left again, or no descriptor is free
                _log.warning("could not accept a connection: %s", error, extra=of_kind("accept"))
                time.sleep(ACCEPT_RETRY_S)
                return
            peer = peer_of(address)
            if not self._workers.take_unproved:
                self._lobby.enter(connection, peer)
                continue
            refusal = self._admit(connection, peer)
            if refusal is None:
                connection.close()  # its worker has it
            else:
                self._lobby.enter(connection, peer, refusal)

    def _take_from_lobby(self, looks_at_all: bool = False) -> None:
        """Admit the connections that have proved that they may be served, or refuse them."""
        for entrance in self._lobby.proved(looks_at_all):
            refusal = entrance.refusal or self._admit(
                entrance.messages, entrance.peer, entrance.token_digest
            )
            if refusal is None:
                entrance.messages.release()  # its worker has it
            else:
                entrance.refuse(ErrorCode.GO_ELSEWHERE, refusal)

    def _admit(self, connection: Any, peer: str, token_digest: bytes | None = None) -> str | None:
        """Give a client to a worker if it may stay; else return why it may not."""
        served = self._workers.connections, self._workers.connections_of(host_of(peer))
        exceeded = self._limits.exceeded(*served)
        if exceeded is not None:
            _log.warning(
                "refusing a connection from %s: %s", peer, exceeded, extra=of_kind("limit")
            )
            self._state.add(Cell.REFUSED_FOR_LIMIT)
            return exceeded
        decision = self._workers.admit()
        self._state[Cell.NEEDED] = decision.needed_bytes
        if not decision.is_admitted:
            _log.warning(
                "refusing a connection from %s: %s", peer, decision, extra=of_kind("memory")
            )
            self._state.add(Cell.REFUSED_FOR_MEMORY)
            return str(decision)
        try:
            pid = self._workers.serve(connection, peer, token_digest)
        except OSError as error:
            _log.error(
                "refusing a connection from %s: no worker serves it: %s", peer, error,
                extra=of_kind("worker"),
            )  # fmt: skip
            self._state.add(Cell.REFUSED_WITHOUT_WORKER)
            return "no worker can be started"
        self._state.add(Cell.ACCEPTED)
        _log.info("worker %d serves %s", pid, peer)
        return None
