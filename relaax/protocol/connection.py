"""The interface of both ends: whole messages in both directions."""

from abc import ABC, abstractmethod
from typing import TypeAlias

Payload: TypeAlias = bytes | memoryview
"""The bytes of one message. A view stays valid; its bytes do not change."""


class PeerClosed(ConnectionError):
    """The peer has closed the connection, between two messages."""


class MessageConnection(ABC):
    """A connection that has been opened elsewhere, over TCP, TLS, a WebSocket or memory.

    A client waits for its messages: ``send`` and ``receive``. An event loop never waits: it polls
    ``fileno``, takes messages that are there with ``receive_now``, hands over its answers with
    ``send_now`` and, while a part of them ``is_unsent``, calls ``flush`` when the peer takes more.
    ``receive_now`` may have read more than it returns: while ``has_message``, the next message is
    there already and ``fileno`` does not show it.

    All methods raise OSError when the connection is lost.
    """

    #: How many bytes a message may have that is received; it holds from the next one on.
    max_received_bytes: int

    @abstractmethod
    def send(self, payload: bytes) -> None:
        """Send a message; wait until it is on its way.

        ValueError for a message that is empty or too large, TimeoutError when the peer does not
        take it in time.
        """

    @abstractmethod
    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """Wait for the next message; return None when the peer has closed before it.

        ``timeout_s`` bounds the wait for a message to begin, with TimeoutError; None waits for as
        long as the connection lasts. ProtocolError for a message that breaks off or is too large,
        or that does not come whole in time.
        """

    @abstractmethod
    def receive_now(self) -> Payload | None:
        """Return the next message if it is there, else None.

        PeerClosed when the peer has closed before it; ProtocolError as ``receive``.
        """

    @abstractmethod
    def send_now(self, payload: bytes) -> None:
        """Send as much as the peer takes at once, and keep the rest for ``flush``."""

    @abstractmethod
    def flush(self) -> None:
        """Send as much of the rest as the peer takes."""

    @property
    @abstractmethod
    def is_unsent(self) -> bool:
        """Whether a rest waits to be flushed."""

    @property
    @abstractmethod
    def has_message(self) -> bool:
        """Whether ``receive_now`` would return a message that ``fileno`` may not show."""

    @abstractmethod
    def require_progress(self, now: float) -> None:
        """Raise when a message that has begun is overdue at ``now`` (time.monotonic()).

        ProtocolError for a received one, TimeoutError for a sent one.
        """

    @abstractmethod
    def fileno(self) -> int:
        """Return the descriptor to poll: readable when something has come, or the peer has closed.

        It is writable when the peer takes more. -1 after ``close``.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
