"""Clients that offer steps at a fixed rate, or one after the other, many in each process.

A client is a socket and messages that were encoded before: hundreds of them cost a process little,
so that the servers have the machine. Each carries one environment, which waits for its action
before it steps again, as the protocol requires. A step that becomes due before that is sent late,
and its latency begins when it was due. Timers of the event loop are exact to a millisecond. Without
a rate the next step is due when the answer comes.
"""

import contextlib
import heapq
import multiprocessing
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from cells import Cell, Unmeasured
from clients import Figures, Window, received
from processes import kill, start_child

from relaax.errors import ProtocolError
from relaax.protocol import FrameConnection, binary
from relaax.steps import START, Steps

#: Answers that precede the first that counts: the welcome, and the first action.
_WELCOME, _FIRST_ACTION = 1, 2

#: A connection without its first action by then counts as refused.
ADMISSION_DEADLINE_S = 300.0

#: From the order to play to the first step, so that all processes have got it.
ORDER_S = 0.2


@dataclass(frozen=True)
class Messages:
    """What all connections send after their hello, which names each client."""

    start: bytes
    step: bytes

    @classmethod
    def of(cls, observation: np.ndarray) -> Self:
        """Encode messages of one environment that always reports ``observation``."""
        return cls(_encoded(START, 0.0, observation), _encoded(0, 1.0, observation))


def _encoded(flags: int, reward: float, observation: np.ndarray) -> bytes:
    steps = Steps(
        environments=np.zeros(1, np.int64),
        flags=np.array([flags], np.uint8),
        rewards=np.array([reward]),
        observations=observation[None],
        finals=(),
    )
    return binary.encode_steps(steps)


class _Connection:
    """A client with one environment, on a socket that never waits."""

    def __init__(self, number: int, url: str) -> None:
        host, _, port = url.rpartition(":")
        self.number = number
        #: It is connected when it becomes writable; from then on it belongs to ``frames``.
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.connect_ex((host, int(port)))
        self.frames: FrameConnection | None = None
        self.answers = 0
        #: When its next step is due, or the one that is on its way was; time.monotonic().
        self.due = 0.0

    def greet(self) -> None:
        """Send the hello over the connection that has just been made."""
        self.frames = FrameConnection(self.sock)
        self.send(binary.encode_hello(binary.Hello(f"connection {self.number}", "benchmark")))

    def send(self, payload: bytes) -> None:
        """Send a message. There is room for it: the server has read all that came before."""
        if self.frames is not None:
            self.frames.send_now(payload)


@dataclass(frozen=True)
class Admitted:
    """How the connections of one process were admitted."""

    count: int
    #: When the first of them began to connect; time.monotonic().
    began_s: float
    #: When the last of them had its first action.
    ended_s: float
    #: Why the first connection was closed; None if all are open.
    reason: str | None


@dataclass(frozen=True)
class Played:
    """What the connections of one process reached."""

    #: float64 [A, 2]: when each answered step was due, and when its answer came.
    answered: np.ndarray
    #: Connections that were closed after their first action.
    lost: int
    #: As in Admitted.
    reason: str | None


class Connections:
    """A share of the connections, driven by one event loop."""

    def __init__(self, url: str, cell: Cell, numbers: range) -> None:
        self._messages = Messages.of(cell.observation)
        self._selector = selectors.DefaultSelector()
        self._open: dict[int, _Connection] = {}
        #: Those that wait until their next step is due: when that is, and their number.
        self._idle: list[tuple[float, int]] = []
        self._answered: list[tuple[float, float]] = []
        self._period_s = 0.0
        self._reason: str | None = None
        #: Those without a first action.
        self._waiting = set(numbers)
        self._admitted = 0
        self._began = self._last_admitted = time.monotonic()
        for number in numbers:
            self._open[number] = connection = _Connection(number, url)
            self._selector.register(connection.sock, selectors.EVENT_WRITE, connection)

    def admit(self, deadline: float) -> Admitted:
        """Wait for all first actions; a connection without one at ``deadline`` is closed."""
        while self._waiting and time.monotonic() < deadline:
            self._serve(deadline)
        for number in list(self._waiting):
            self._close(self._open[number], "the first action did not come in time")
        return Admitted(self._admitted, self._began, self._last_admitted, self._reason)

    def play(self, begin: float, period_s: float, connections: int, end: float) -> Played:
        """Step each connection every ``period_s`` seconds, until ``end``.

        All ``connections`` of all processes are spread evenly over a period. If it is 0, each steps
        again as soon as it is answered.
        """
        self._period_s = period_s
        for number, connection in self._open.items():
            connection.due = begin + period_s * number / connections
            self._idle.append((connection.due, number))
        heapq.heapify(self._idle)
        while time.monotonic() < end:
            self._send_what_is_due()
            self._serve(min(end, self._idle[0][0]) if self._idle else end)
        answered = np.array(self._answered).reshape(-1, 2)
        return Played(answered, self._admitted - len(self._open), self._reason)

    def _send_what_is_due(self) -> None:
        now = time.monotonic()
        while self._idle and self._idle[0][0] <= now:
            _, number = heapq.heappop(self._idle)
            if number in self._open:
                self._step(self._open[number])

    def _step(self, connection: _Connection) -> None:
        try:
            connection.send(self._messages.step)
        except OSError as error:
            self._close(connection, str(error))

    def _serve(self, until: float) -> None:
        """Wait for events, until a moment at most, and handle them."""
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            connection: _Connection = key.data
            try:
                self._handle(connection)
            except (OSError, ProtocolError, binary.Error) as error:
                self._close(connection, str(error))

    def _handle(self, connection: _Connection) -> None:
        if connection.frames is None:
            self._selector.modify(connection.sock, selectors.EVENT_READ, connection)
            connection.greet()
        elif (payload := connection.frames.receive_now()) is not None:
            binary.raise_if_error(payload)
            self._note_answer(connection)

    def _note_answer(self, connection: _Connection) -> None:
        now = time.monotonic()
        connection.answers += 1
        if connection.answers == _WELCOME:
            connection.send(self._messages.start)
        elif connection.answers == _FIRST_ACTION:
            self._waiting.remove(connection.number)
            self._admitted += 1
            self._last_admitted = now
        else:
            self._answered.append((connection.due, now))
            connection.due = connection.due + self._period_s if self._period_s else now
            heapq.heappush(self._idle, (connection.due, connection.number))

    def _close(self, connection: _Connection, reason: str) -> None:
        if self._open.pop(connection.number, None) is not None:
            self._waiting.discard(connection.number)
            self._reason = self._reason or reason
            self._selector.unregister(connection.sock)
            connection.sock.close()


def run_connections(url: str, cell: Cell, numbers: range, deadline: float, pipe: Any) -> None:
    """Play the connections with these numbers, as ``pipe`` asks; the target of a process.

    Sends Admitted, receives the arguments of ``Connections.play``, sends Played, and then keeps the
    connections open until it is killed.
    """
    connections = Connections(url, cell, numbers)
    pipe.send(connections.admit(deadline))
    pipe.send(connections.play(*pipe.recv()))
    pipe.recv()


class OfferedLoad:
    """Connections of several processes, which have connected or have been refused."""

    def __init__(self, pipes: Sequence[Any], cell: Cell) -> None:
        self._pipes = pipes
        self._connections = cell.connections
        admitted: list[Admitted] = [received(pipe) for pipe in pipes]
        self.admitted = sum(each.count for each in admitted)
        if not self.admitted:
            raise Unmeasured(f"every connection was refused: {admitted[0].reason}")
        #: From the first connection's begin to the last one's first action.
        self.admitted_s = max(each.ended_s for each in admitted) - min(
            each.began_s for each in admitted
        )
        self.refusal = next((each.reason for each in admitted if each.reason), None)

    def play(self, end: float, rate: float) -> None:
        """Let each step ``rate`` times a second until ``end``; 0: as fast as answers come."""
        order = (time.monotonic() + ORDER_S, 1 / rate if rate else 0.0, self._connections, end)
        for pipe in self._pipes:
            pipe.send(order)

    def played(self) -> Played:
        """Wait for the end, and return what all have reached together."""
        played: list[Played] = [received(pipe) for pipe in self._pipes]
        return Played(
            np.concatenate([each.answered for each in played]),
            sum(each.lost for each in played),
            next((each.reason for each in played if each.reason), None),
        )


def figures_within(played: Played, window: Window) -> Figures:
    """Return the figures of the answers that came within ``window``."""
    due, came = played.answered[:, 0], played.answered[:, 1]
    within = (came > window.begin) & (came <= window.end)
    return Figures.of((came - due)[within], 1, window.seconds)


@contextlib.contextmanager
def offered_load(url: str, cell: Cell, processes: int) -> Iterator[OfferedLoad]:
    """Fork processes that connect at once, each with its share of the connections."""
    context = multiprocessing.get_context("fork")
    deadline = time.monotonic() + ADMISSION_DEADLINE_S
    pipes: list[Any] = []
    children = []
    try:
        for first in range(processes):
            ours, theirs = context.Pipe()
            numbers = range(first, cell.connections, processes)
            children.append(
                start_child(context, run_connections, url, cell, numbers, deadline, theirs)
            )
            theirs.close()
            pipes.append(ours)
        yield OfferedLoad(pipes, cell)
    finally:
        kill(children)
