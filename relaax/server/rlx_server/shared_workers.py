"""Workers that share all connections: forked once, replaced when one dies."""

import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator

from relaax.server.rlx_server.admission import AdmissionDecision, ShareAdmission, Sharing
from relaax.server.rlx_server.children import STOP_DEADLINE_S, Children, ExitedChild, WorkerPool
from relaax.server.rlx_server.handover import Outbox, channel
from relaax.server.rlx_server.tally import Tally, WorkerRow
from relaax.server.rlx_server.worker.process import (
    ALGORITHM_HAS_FAILED,
    CONFIGURATION_IS_WRONG,
    TOKEN_IS_REFUSED,
)

_log = logging.getLogger(__name__)

#: How long after its start a worker that has failed is started again, at the earliest.
RESTART_S = 2.0

#: A worker that takes longer to start, for example without a parameter server, gets connections
#: only when no other worker does better.
START_S = 20.0

#: How long a worker may take to exit after it has closed its channel.
EXIT_S = STOP_DEADLINE_S


class SharedWorkers(WorkerPool):
    """Forks so many workers, and hands each connection to the least loaded one.

    A worker is given its end of the channel. Connections are taken as soon as all workers have been
    ready. A worker that is started again gets its share while it starts: its clients, which come
    back, wait for it. If it fails to start, it gets none until it is ready, as long as others are
    there.
    """

    #: The workers themselves ask connections to prove that they may be served.
    take_unproved = True

    def __init__(
        self,
        count: int,
        children: Children,
        admission: ShareAdmission,
        selector: selectors.BaseSelector,
        seeds: Iterator[int],
        tally: Tally,
        run: Callable[[int, WorkerRow, socket.socket], int],
    ) -> None:
        super().__init__(children, seeds, tally, run)
        self._admission = admission
        self._workers = [_SharedWorker(number, self, selector) for number in range(1, count + 1)]
        self._have_been_ready = False

    @property
    def are_idle(self) -> bool:
        """Whether no connection is served."""
        return not any(worker.load for worker in self._workers)

    @property
    def is_open(self) -> bool:
        """Whether connections can be taken now."""
        if not self._have_been_ready:
            self._have_been_ready = all(worker.is_ready for worker in self._workers)
        return self._have_been_ready and any(worker.outbox is not None for worker in self._workers)

    @property
    def has_room(self) -> bool:
        """Whether a worker can be handed a connection; if not, one will soon have taken some."""
        return any(outbox.has_room for outbox in self._outboxes())

    def start_due(self) -> None:
        """Start the workers that are missing, if it is time to."""
        for worker in self._workers:
            worker.start_if_due()

    def admit(self) -> AdmissionDecision:
        """Decide whether there is memory for one more connection."""
        return self._admission.decide(
            Sharing(worker.pid, worker.outbox.environments)
            for worker in self._workers
            if worker.pid is not None and worker.outbox is not None and worker.is_ready
        )

    @property
    def connections(self) -> int:
        """How many connections are served."""
        return sum(outbox.connections for outbox in self._outboxes())

    def connections_of(self, host: str) -> int:
        """Return how many of them come from an address."""
        return sum(outbox.connections_of(host) for outbox in self._outboxes())

    def _outboxes(self) -> Iterator[Outbox]:
        return (worker.outbox for worker in self._workers if worker.outbox is not None)

    def serve(self, connection: socket.socket, peer: str, token_digest: bytes | None = None) -> int:
        """Hand ``connection`` to a worker and return its pid; OSError when no worker takes it.

        It has shown no token yet: the worker asks for that.
        """
        reason = OSError("no worker runs that takes connections")
        for worker in sorted(self._workers, key=lambda worker: (worker.is_doubtful, worker.load)):
            if worker.outbox is None or worker.pid is None or not worker.outbox.has_room:
                continue
            try:
                worker.outbox.hand_over(connection, peer)
            except OSError as error:  # it has just died
                reason = error
                continue
            return worker.pid
        raise reason

    def note_exit(self, exited: ExitedChild) -> int | None:
        """Take note of the end of a child; return the exit status with which all should end."""
        for worker in self._workers:
            if worker.pid == exited.pid:
                self._admission.forget(exited.pid)
                self.give_back(exited.pid)
                was_ready = worker.was_ready
                worker.note_exit()
                if exited.exit_code == CONFIGURATION_IS_WRONG:
                    return CONFIGURATION_IS_WRONG
                if exited.exit_code in (ALGORITHM_HAS_FAILED, TOKEN_IS_REFUSED) and not was_ready:
                    return self._status_after_a_failed_start(exited.exit_code)
        return None

    def _status_after_a_failed_start(self, exit_code: int) -> int | None:
        """Return 1 where no worker has ever served: the next start would fail, too."""
        if self._have_been_ready:
            return None
        if exit_code == TOKEN_IS_REFUSED:
            _log.error("its own token is refused (--auth-token-file): the RLX server stops")
        else:
            _log.error("the algorithm cannot be started: the RLX server stops")
        return 1


class _SharedWorker:
    """One of them: its process, while there is one, and the channel to it."""

    def __init__(self, number: int, pool: WorkerPool, selector: selectors.BaseSelector) -> None:
        self._number = number
        self._pool = pool
        self._selector = selector
        self._due = 0.0
        self._started_at = 0.0
        self._has_failed_to_start = False
        #: Whether this process of the worker has served.
        self.was_ready = False
        #: When the channel was lost while the process went on.
        self._lost_at: float | None = None
        self.pid: int | None = None
        self.outbox: Outbox | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the worker serves."""
        return self.outbox is not None and self.outbox.is_ready

    @property
    def is_doubtful(self) -> bool:
        """Whether it is not ready, and may not be so soon."""
        is_late = time.monotonic() - self._started_at > START_S
        return not self.is_ready and (self._has_failed_to_start or is_late)

    @property
    def load(self) -> int:
        """Environments that it serves, or will serve."""
        return 0 if self.outbox is None else self.outbox.load

    def start_if_due(self) -> None:
        """Fork the process if it is gone and its pause is over."""
        if self.pid is not None:
            self._kill_if_stuck(self.pid)
            return
        if time.monotonic() < self._due:
            return
        self._started_at = time.monotonic()
        self._due = self._started_at + RESTART_S
        ours, theirs = channel()
        self.outbox = Outbox(ours)
        self._pool.children.parents_own(self.outbox)
        self._selector.register(self.outbox, selectors.EVENT_READ, self._listen)
        with theirs:
            try:
                self.pid = self._pool.fork(f"worker {self._number}", theirs)
            except OSError as error:
                _log.error("could not start worker %d: %s", self._number, error)
                self._close()
                return
        _log.info("worker %d starts (pid %d)", self._number, self.pid)

    def note_exit(self) -> None:
        """Take note that the process has ended."""
        self._has_failed_to_start = self._has_failed_to_start or not self.was_ready
        self.was_ready = False
        self._lost_at = None
        self.pid = None
        self._close()

    def _listen(self) -> None:
        """Take the worker's reports."""
        if self.outbox is None:
            return
        was_ready = self.is_ready
        self.outbox.listen()
        if self.is_ready and not was_ready:
            self.was_ready, self._has_failed_to_start = True, False
            _log.info("worker %d is ready", self._number)
        if self.outbox.is_lost:
            self._close()
            self._lost_at = time.monotonic()

    def _kill_if_stuck(self, pid: int) -> None:
        """Kill a process that serves no more and does not exit."""
        if self._lost_at is not None and time.monotonic() - self._lost_at > EXIT_S:
            _log.warning("worker %d (pid %d) does not exit: killed", self._number, pid)
            self._lost_at = None
            self._pool.children.send_signal([pid], signal.SIGKILL)

    def _close(self) -> None:
        if self.outbox is not None:
            self._selector.unregister(self.outbox)
            self._pool.children.no_longer_open(self.outbox)
            self.outbox.close()
            self.outbox = None
