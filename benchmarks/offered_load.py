"""Clients that offer steps at a fixed rate, many connections in each process.

A client is a socket and messages that were encoded before: hundreds of them cost a process little,
so that the servers have the machine. Each carries one environment, which waits for its action
before it steps again, as the protocol requires. A step that becomes due before that is sent late,
and its latency begins when it was due. Timers of the event loop are exact to a millisecond.
"""

import heapq
import selectors
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from cells import Cell

from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.steps import START, Steps

_LENGTH = struct.Struct("<I")
_RECEIVE_BYTES = 64 * 1024

#: Answers that precede the first that counts: the welcome, and the first action.
_WELCOME, _FIRST_ACTION = 1, 2


@dataclass(frozen=True)
class Messages:
    """Frames that all connections send, but for the hello, which names each client."""

    start: bytes
    step: bytes

    @classmethod
    def of(cls, observation: np.ndarray) -> Self:
        """Encode messages of one environment that always reports ``observation``."""
        return cls(_steps_frame(START, 0.0, observation), _steps_frame(0, 1.0, observation))


def _steps_frame(flags: int, reward: float, observation: np.ndarray) -> bytes:
    environment, finals = np.zeros(1, np.int64), ()
    rewards = np.array([reward])
    steps = Steps(environment, np.array([flags], np.uint8), rewards, observation[None], finals)
    return _frame(binary.encode_steps(steps))


def _hello_frame(number: int) -> bytes:
    return _frame(binary.encode_hello(binary.Hello(f"connection {number}", "benchmark")))


def _frame(payload: bytes) -> bytes:
    return _LENGTH.pack(len(payload)) + payload


class _Connection:
    """A socket that never blocks, with at most one message on its way."""

    def __init__(self, number: int, url: str) -> None:
        host, _, port = url.rpartition(":")
        self.number = number
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.connect_ex((host, int(port)))  # goes on until the socket is writable
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = 0
        #: When its next step is due, or the one that is on its way was; time.monotonic().
        self.due = 0.0
        self._received = bytearray()

    def send(self, frame: bytes) -> None:
        """Send a frame. There is room for it: the server has read all that came before."""
        if self.sock.send(frame) < len(frame):
            raise ProtocolError("the server reads no more")

    def payloads(self) -> Iterator[bytes]:
        """Receive, and yield whole payloads; OSError or ProtocolError when the server closes."""
        chunk = self.sock.recv(_RECEIVE_BYTES)
        if not chunk:
            raise ProtocolError("the server closed the connection without a reason")
        self._received += chunk
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            yield bytes(self._received[_LENGTH.size : end])
            del self._received[:end]


@dataclass(frozen=True)
class Admitted:
    """How the connections of one process were admitted."""

    count: int
    #: When the first of them began to connect; time.monotonic().
    began_s: float
    #: When the last of them had its first action.
    ended_s: float


@dataclass(frozen=True)
class Played:
    """What the connections of one process reached."""

    #: float64 [A, 2]: when each answered step was due, and when its answer came.
    answered: np.ndarray
    #: Connections that were closed after their first action.
    lost: int
    #: Why the first connection was closed; None where none was.
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
        return Admitted(self._admitted, self._began, self._last_admitted)

    def play(self, begin: float, period_s: float, connections: int, end: float) -> Played:
        """Step each connection every ``period_s`` seconds, until ``end``.

        All ``connections`` of all processes are spread evenly over a period.
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
                self._send(self._open[number], self._messages.step)

    def _serve(self, until: float) -> None:
        """Wait for events, until a moment at most, and handle them."""
        for key, events in self._selector.select(max(0.0, until - time.monotonic())):
            if events & selectors.EVENT_WRITE:
                self._selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
                self._send(key.data, _hello_frame(key.data.number))
            else:
                self._receive(key.data)

    def _receive(self, connection: _Connection) -> None:
        try:
            for payload in connection.payloads():
                binary.raise_if_error(payload)
                self._note_answer(connection)
        except (OSError, ProtocolError, binary.Error) as error:
            self._close(connection, str(error))

    def _note_answer(self, connection: _Connection) -> None:
        now = time.monotonic()
        connection.answers += 1
        if connection.answers == _WELCOME:
            self._send(connection, self._messages.start)
        elif connection.answers == _FIRST_ACTION:
            self._waiting.remove(connection.number)
            self._admitted += 1
            self._last_admitted = now
        else:
            self._answered.append((connection.due, now))
            connection.due += self._period_s
            heapq.heappush(self._idle, (connection.due, connection.number))

    def _send(self, connection: _Connection, frame: bytes) -> None:
        try:
            connection.send(frame)
        except (OSError, ProtocolError) as error:
            self._close(connection, str(error))

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
