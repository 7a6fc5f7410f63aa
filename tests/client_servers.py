"""Servers to test clients with.

``HandMadeServer`` speaks RLX version 1 by hand, without the code under test; ``RecordingServer``
speaks version 2 with this project's own pieces.
"""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol import FrameConnection, MessageConnection, binary
from relaax.protocol.binary import Hello, Metric, Welcome
from relaax.steps import ENDED, Steps, wants_action

CLOSE = object()
SILENCE = object()
HELLO = b"\x01RLX"


@dataclass
class Exchange:
    """A message that came: on which connection, as how many-th there, and what it was."""

    connection: int
    number: int
    message: list[Any]

    @property
    def state(self) -> Any:
        return json.loads(self.message[-1])


def answer_as_a_server(exchange: Exchange) -> Any:
    """Answer 1 for every action, and 10 for every score."""
    return {"reward_and_reset": ["reset", 10.0], "scalar_metric": SILENCE}.get(
        exchange.message[0], ["act", 1]
    )


@dataclass(kw_only=True)
class Listening:
    """Accepts connections one after another and serves each on a thread, until it is closed.

    A thread alone closes the connection that it serves. From outside connections are only shut
    down: a descriptor that is closed beside a thread that uses it may already be another one's.
    """

    accepted: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Accept no more, then end what is served."""
        _shut_down(self._listener)
        self._accepting.join(10)
        self._listener.close()
        for connection in self._connections:
            _shut_down(connection)
        self.join_threads()

    def join_threads(self, timeout_s: float = 10) -> bool:
        """Wait for the threads that serve connections; return whether they have ended."""
        for thread in self._threads:
            thread.join(timeout_s)
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self, index: int, connection: socket.socket) -> None:
        raise NotImplementedError

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._connections.append(connection)
            thread = threading.Thread(
                target=self._serve_and_close, args=(self.accepted, connection), daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _serve_and_close(self, index: int, connection: socket.socket) -> None:
        # Either end may close at any moment: then reading, writing and setting options fail.
        with connection, contextlib.suppress(OSError):
            self._serve(index, connection)


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already, or its peer has closed it
        sock.shutdown(socket.SHUT_RDWR)


@dataclass
class HandMadeServer(Listening):
    """Answers by hand; ``answer`` says what each message gets.

    Like every server that knows version 1 alone it closes a connection that starts with a hello;
    such connections are counted apart.

    An answer is a JSON value, bytes to send as they are, ``SILENCE`` or ``CLOSE``.
    """

    answer: Callable[[Exchange], Any] = answer_as_a_server
    exchanges: list[Exchange] = field(default_factory=list)
    hellos: int = 0

    @property
    def messages(self) -> list[list[Any]]:
        return [exchange.message for exchange in self.exchanges]

    @property
    def verbs(self) -> list[str]:
        return [message[0] for message in self.messages]

    def _serve(self, index: int, connection: socket.socket) -> None:
        with contextlib.suppress(ValueError), connection.makefile("rb") as stream:
            number = 0
            while header := stream.read(4):
                number += 1
                payload = stream.read(struct.unpack("<I", header)[0])
                if payload.startswith(HELLO):
                    self.hellos += 1
                    self.accepted -= 1
                    return
                message = json.loads(payload)
                exchange = Exchange(index, number, message)
                self.exchanges.append(exchange)
                answer = self.answer(exchange)
                if answer is CLOSE:
                    return
                if answer is not SILENCE:
                    connection.sendall(framed(answer))


@dataclass
class Recorder:
    """Welcomes clients of version 2, answers ``action`` everywhere and keeps what they report.

    ``greet`` may return another payload than the welcome to connection ``number``, and ``reply``
    another answer to steps; ``CLOSE`` closes the connection instead.
    """

    action: Any = 1
    greet: Callable[[int], Any] = lambda number: None
    reply: Callable[[int, Steps], Any] = lambda number, steps: None
    hellos: list[Hello] = field(default_factory=list)
    steps: list[Steps] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """By message: flags, rewards, observations and final observations."""
        return [
            (
                steps.flags.tolist(),
                steps.rewards.tolist(),
                np.ravel(steps.observations).tolist(),
                np.ravel(steps.finals).tolist(),
            )
            for steps in self.steps
        ]

    def talk(self, number: int, connection: MessageConnection) -> None:
        """Serve connection ``number`` until one end closes it."""
        first = connection.receive()
        if first is None:
            return
        hello = binary.decode_hello(first)
        self.hellos.append(hello)
        if not _send(connection, self.greet(number), binary.encode_welcome(Welcome())):
            return
        while (payload := connection.receive()) is not None:
            metric = binary.decode_metric(payload)
            if metric is not None:
                self.metrics.append(metric)
                continue
            steps = binary.decode_steps(payload, hello.environments)
            self.steps.append(steps)
            if not _send(connection, self.reply(number, steps), self._usual_answer(steps)):
                return

    def _usual_answer(self, steps: Steps) -> bytes:
        actions = np.array([self.action] * int(wants_action(steps.flags).sum()))
        scores = np.ones(np.count_nonzero(steps.flags & ENDED))
        return binary.encode_answers(steps.environments, steps.flags, actions, scores)


@dataclass
class RecordingServer(Recorder, Listening):
    """A recorder that is reached over TCP."""

    def _serve(self, index: int, connection: socket.socket) -> None:
        with contextlib.suppress(ProtocolError):
            self.talk(index, FrameConnection(connection))


def _send(connection: MessageConnection, payload: Any, usual: bytes) -> bool:
    """Send ``payload`` or what is usual; return False if the connection is to be closed."""
    if payload is CLOSE:
        return False
    connection.send(usual if payload is None else payload)
    return not (payload or b"").startswith(b"\6")


def framed(answer: Any) -> bytes:
    if isinstance(answer, bytes):
        return answer
    payload = json.dumps(answer).encode()
    return struct.pack("<I", len(payload)) + payload


@pytest.fixture
def start_server() -> Iterator[Callable[..., HandMadeServer]]:
    servers: list[HandMadeServer] = []

    def start(answer: Callable[[Exchange], Any] = answer_as_a_server) -> HandMadeServer:
        servers.append(HandMadeServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def start_recording_server() -> Iterator[Callable[..., RecordingServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(contextlib.closing(RecordingServer(**options)))


@pytest.fixture
def recorder() -> Recorder:
    """A server of version 2 that answers 1 everywhere, to be reached over any transport."""
    return Recorder()


@pytest.fixture
def server(start_recording_server: Callable[..., RecordingServer]) -> RecordingServer:
    """A server of version 2 that answers 1 everywhere."""
    return start_recording_server()


@pytest.fixture
def close() -> object:
    """The answer that closes the connection."""
    return CLOSE


@pytest.fixture
def silence() -> object:
    """The answer that is none."""
    return SILENCE


@pytest.fixture
def usual_answer() -> Callable[[Exchange], Any]:
    return answer_as_a_server


@pytest.fixture
def unused_url() -> str:
    """An address at which no server listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"
