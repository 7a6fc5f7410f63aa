"""Connections in memory: whole messages between two threads, without a network."""

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from relaax.address import Address
from relaax.protocol import MessageConnection, PeerClosed

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
SEND_TIMEOUT_S = 30.0

_TOKEN = b"\0"


class MemoryConnection(MessageConnection):
    """One end of a pair.

    Messages lie in a queue. A pair of sockets carries one byte for each, so that a connection can
    be polled, and that the peer takes no more when these sockets are full.
    """

    def __init__(
        self,
        tokens: socket.socket,
        incoming: deque[bytes],
        outgoing: deque[bytes],
        max_message_bytes: int,
        send_timeout_s: float,
    ) -> None:
        self._tokens = tokens
        self._incoming = incoming
        self._outgoing = outgoing
        self._unsent: deque[bytes] = deque()
        self._max_message_bytes = max_message_bytes
        self._send_timeout_s = send_timeout_s
        self._sends_since = 0.0

    def send(self, payload: bytes) -> None:
        self.send_now(payload)
        deadline = time.monotonic() + self._send_timeout_s
        while self._unsent:
            select.select([], [self._tokens], [], max(deadline - time.monotonic(), 0.0))
            self.flush()
            self.require_progress(time.monotonic())

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        self._tokens.settimeout(timeout_s)
        try:
            token = self._tokens.recv(1)
        finally:
            self._tokens.settimeout(None)
        return self._incoming.popleft() if token else None

    def receive_now(self) -> bytes | None:
        try:
            token = self._tokens.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if not token:
            raise PeerClosed("the peer has closed the connection")
        return self._incoming.popleft()

    def send_now(self, payload: bytes) -> None:
        if not 0 < len(payload) <= self._max_message_bytes:
            raise ValueError(
                f"a message holds 1 to {self._max_message_bytes} bytes, this one has {len(payload)}"
            )
        if self._unsent:
            self._unsent.append(payload)
        elif not self._is_taken(payload):
            self._unsent.append(payload)
            self._sends_since = time.monotonic()

    def flush(self) -> None:
        while self._unsent and self._is_taken(self._unsent[0]):
            self._unsent.popleft()

    @property
    def is_unsent(self) -> bool:
        return bool(self._unsent)

    @property
    def has_message(self) -> bool:
        return False  # ``fileno`` shows every message

    def require_progress(self, now: float) -> None:
        if self._unsent and now > self._sends_since + self._send_timeout_s:
            raise TimeoutError(
                f"the peer has not taken {len(self._unsent)} messages within "
                f"{self._send_timeout_s:g} s"
            )

    def fileno(self) -> int:
        return self._tokens.fileno()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._tokens.shutdown(socket.SHUT_RDWR)
        self._tokens.close()

    def _is_taken(self, payload: bytes) -> bool:
        self._outgoing.append(payload)
        try:
            self._tokens.send(_TOKEN, socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._outgoing.pop()
            return False
        return True


def memory_pair(
    max_message_bytes: int = MAX_MESSAGE_BYTES, send_timeout_s: float = SEND_TIMEOUT_S
) -> tuple[MemoryConnection, MemoryConnection]:
    """Return both ends of a connection."""
    left, right = socket.socketpair()
    to_left: deque[bytes] = deque()
    to_right: deque[bytes] = deque()
    return (
        MemoryConnection(left, to_left, to_right, max_message_bytes, send_timeout_s),
        MemoryConnection(right, to_right, to_left, max_message_bytes, send_timeout_s),
    )


class MemoryTransport:
    """Opens connections to ``serve``, which runs on a thread for each, given its number from 1.

    Leaving its context waits for these threads; they end when their connections do.
    """

    def __init__(self, serve: Callable[[int, MessageConnection], None]) -> None:
        self._serve = serve
        self._threads: list[threading.Thread] = []
        #: What was asked for: addresses and timeouts in seconds.
        self.requests: list[tuple[Address, float]] = []
        #: The clients' ends.
        self.opened: list[MemoryConnection] = []

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        self.requests.append((address, timeout_s))
        ours, theirs = memory_pair()
        self.opened.append(ours)
        thread = threading.Thread(target=self._run, args=(len(self.opened), theirs), daemon=True)
        self._threads.append(thread)
        thread.start()
        return ours

    def __enter__(self) -> "MemoryTransport":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.opened:
            connection.close()
        for thread in self._threads:
            thread.join(10)

    def _run(self, number: int, connection: MessageConnection) -> None:
        with contextlib.closing(connection), contextlib.suppress(OSError):
            self._serve(number, connection)
