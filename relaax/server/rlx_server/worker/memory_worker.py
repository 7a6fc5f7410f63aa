"""A worker that answers each message before the client's ``send`` returns."""

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from relaax.address import Address
from relaax.algorithm_base import ConfigBase
from relaax.configuration.algorithm_loader import Algorithm
from relaax.errors import AgentError, NoRoom, ProtocolError
from relaax.protocol import FrameConnection, MessageConnection, PeerClosed, binary
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.tally import WorkerRow, private_row
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.answers import Refusal
from relaax.server.rlx_server.worker.connection import Connection
from relaax.server.rlx_server.worker.requests import Request
from relaax.server.rlx_server.worker.responder import responders_of
from relaax.server.rlx_server.worker.session import Session
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import Steps

#: Errors that one client, or its agent, can cause, and that end its connection alone.
_CLIENTS_FAULTS = (ProtocolError, binary.Error, NoRoom, AgentError)


def settings_in_memory(algorithm: Algorithm, config: ConfigBase, **more: Any) -> WorkerSettings:
    """Return the settings of a worker without sockets; ``more`` of them by name."""
    own = {"parameter_server": "this process", "timeout_s": None, "open_connection": _no_sockets}
    return WorkerSettings(algorithm=algorithm, config=config, **{**own, **more})


def _no_sockets(sock: socket.socket) -> FrameConnection:
    raise AssertionError(f"there are no sockets in one process: {sock}")


class MemoryConnection(MessageConnection):
    """One end of a connection in one process: the other end has each message at once.

    ``on_sent`` is called when a message lies there.
    """

    def __init__(self) -> None:
        #: Messages from the other end.
        self.came: deque[bytes] = deque()
        self.is_closed = False
        self.other: MemoryConnection | None = None
        self._on_sent: Callable[[], None] = lambda: None

    def join(self, other: "MemoryConnection", on_sent: Callable[[], None]) -> None:
        """Send to the other end from now on."""
        self.other, other.other = other, self
        self._on_sent = on_sent

    def send(self, payload: bytes) -> None:
        """See MessageConnection; the answer is there when this returns."""
        if self.other is None or self.is_closed or self.other.is_closed:
            raise PeerClosed("the connection is closed")
        self.other.came.append(payload)
        self._on_sent()

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """See MessageConnection; nothing is waited for, since nothing else can come."""
        if self.came:
            return self.came.popleft()
        if self.other is None or self.other.is_closed:
            return None
        raise TimeoutError("the worker has nothing to answer")

    def receive_now(self) -> Payload | None:
        """See MessageConnection."""
        return self.came.popleft() if self.came else None

    def send_now(self, payload: bytes) -> None:
        """See MessageConnection."""
        self.send(payload)

    def flush(self) -> None:
        """Do nothing: all has been taken."""

    @property
    def is_unsent(self) -> bool:
        """Whether a rest waits to be flushed: never."""
        return False

    @property
    def has_message(self) -> bool:
        """Whether a message is there."""
        return bool(self.came)

    def require_progress(self, now: float) -> None:
        """Do nothing: messages come whole."""

    def fileno(self) -> int:
        """Return -1: there is nothing to poll."""
        return -1

    def close(self) -> None:
        """Close this end; messages that it has sent can still be received."""
        if not self.is_closed:
            self.is_closed = True
            self._on_sent()


class MemoryWorker:
    """Serves like ``rlx_server.worker.loop.Worker``, in the threads of its clients.

    ``is_over`` is asked before each message; once it says so, clients are told that the training is
    over. Clients of several threads take turns. Exceptions of the algorithm's own code are raised
    by the client's ``send``, so that a debugger shows where they come from; only the client's own
    faults are answered. ``before`` is called with steps before they are answered. Events are
    counted in ``row``.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        make_agents: Callable[[], Agents],
        is_over: Callable[[], bool],
        row: WorkerRow | None = None,
        before: Callable[[Steps], object] = lambda steps: None,
    ) -> None:
        self._settings = settings
        self._responders = responders_of(settings, make_agents, False, row or private_row())
        self._is_over = is_over
        self._before = before
        self._connections: list[Connection] = []
        #: How many there have been.
        self._made = 0
        #: Held while a message is handled: agents and learner are of one thread at a time.
        self._turn = threading.RLock()

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return the client's end of a new connection: a worker is its clients' transport."""
        ours, theirs = MemoryConnection(), MemoryConnection()
        with self._turn:
            session = Session(self._made, self._settings, self._responders.of)
            self._made += 1
            connection = Connection(ours, session, "this process", timeout_s=None)
            self._connections.append(connection)
        theirs.join(ours, on_sent=partial(self._take, connection))
        return theirs

    def close(self) -> None:
        """End the agents, and store their remaining metrics."""
        with self._turn:
            self._is_over = lambda: True  # for threads that outlive the environment's program
            for connection in list(self._connections):
                self._forget(connection)
                connection.messages.close()
            self._responders.close()

    def _take(self, connection: Connection) -> None:
        """Handle the message that has come, or that the client has closed its end."""
        with self._turn:
            if connection not in self._connections:
                return
            payload = connection.messages.receive_now()
            if payload is None:
                self._forget(connection)
                connection.messages.close()
                return
            try:
                answer = self._answer(connection.session, payload)
                if answer is not None:
                    connection.send(answer)
            except _CLIENTS_FAULTS as error:
                self._forget(connection)
                connection.part_because_of(error)

    def _answer(self, session: Session, payload: Payload) -> bytes | None:
        """Return the answer to a message; None for a message without an answer."""
        taken = session.take(payload, is_over=self._is_over())
        if not isinstance(taken, Steps):
            return taken
        self._before(taken)
        (answer,) = self._responders.answer([Request(session, taken)], time.monotonic())
        if isinstance(answer, Refusal):
            raise answer.error
        training = self._responders.training
        training.note_connected(sum(each.session.is_training for each in self._connections))
        return training.encoded(answer)

    def _forget(self, connection: Connection) -> None:
        self._connections.remove(connection)
        connection.session.close()
