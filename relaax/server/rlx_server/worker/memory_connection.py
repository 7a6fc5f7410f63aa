"""The two ends of a connection in one process: what one sends, the other has at once."""

from collections import deque
from collections.abc import Callable

from relaax.address import Address
from relaax.protocol import MessageConnection, PeerClosed
from relaax.protocol.connection import Payload


class MemoryConnection(MessageConnection):
    """One end; ``on_sent`` is called when a message lies at the other end."""

    def __init__(self) -> None:
        self._came: deque[bytes] = deque()
        self._is_closed = False
        self._other: MemoryConnection | None = None
        self._on_sent: Callable[[], None] = lambda: None

    def join(self, other: "MemoryConnection", on_sent: Callable[[], None]) -> None:
        """Let the other end have what this one sends."""
        self._other, other._other = other, self
        self._on_sent = on_sent

    def send(self, payload: bytes) -> None:
        """See MessageConnection; the answer is there when this returns."""
        if self._other is None or self._is_closed or self._other._is_closed:
            raise PeerClosed("the connection is closed")
        self._other._came.append(payload)
        self._on_sent()

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """See MessageConnection; nothing is waited for, since nothing else can come."""
        if self._came:
            return self._came.popleft()
        if self._other is None or self._other._is_closed:
            return None
        raise TimeoutError("the worker has nothing to answer")

    def receive_now(self) -> Payload | None:
        """See MessageConnection."""
        return self._came.popleft() if self._came else None

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
        return bool(self._came)

    def require_progress(self, now: float) -> None:
        """Do nothing: messages come whole."""

    def fileno(self) -> int:
        """Return -1: there is nothing to poll."""
        return -1

    def close(self) -> None:
        """Close this end; what it has sent can still be received."""
        if not self._is_closed:
            self._is_closed = True
            self._on_sent()


class MemoryTransport:
    """Connects clients to what ``accept`` makes of a new connection, whatever the address is."""

    def __init__(self, accept: Callable[[], MessageConnection]) -> None:
        self._accept = accept

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return the client's end."""
        return self._accept()
