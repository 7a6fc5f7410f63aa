"""What a connection has to show before it is served, and how it is refused."""

import contextlib
import time
from dataclasses import dataclass, field

from relaax.access import Refusals, Right, TokenFile
from relaax.address import host_of
from relaax.errors import AccessDenied, ProtocolError
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.protocol.tls_socket import PlainPeer
from relaax.protocol.token_message import MAX_TOKEN_MESSAGE_BYTES, TOKEN_HEAD, shown_token

#: How much of a first message shows which one it is.
_TELLING_BYTES = 4

#: All of it must be there before it is served, or so much: a state of version 1 may be large.
_ENOUGH_BYTES = 64 * 1024

#: How a message of version 1 may begin: an array of JSON, which blanks may come before.
_JSON_BEGINS = b"[ \t\r\n"


@dataclass(frozen=True)
class Guard:
    """What an RLX server asks of those who connect."""

    #: None where it asks for no token.
    tokens: TokenFile | None
    #: How long a connection may take to show what it has to.
    hello_timeout_s: float
    refusals: Refusals = field(default_factory=Refusals)


class TooLate(ProtocolError):
    """A connection has not begun in time."""


class Entrance:
    """A connection that has not proved yet that it may be served; until then it costs little.

    It proves that by the right token, where there are tokens, and by a whole first message that
    begins like one of RLX, or much of a large one; inside TLS, if the port speaks that. One that
    fails is refused with the reason, if it understands that: later and later for those of one
    address.
    """

    def __init__(
        self, messages: FrameConnection, peer: str, guard: Guard, refusal: str | None = None
    ) -> None:
        self.messages = messages
        self.peer = peer
        #: Why it will not be served, whatever it proves; None where it may be.
        self.refusal = refusal
        self._guard = guard
        self._max_received_bytes = messages.max_received_bytes
        self._deadline = time.monotonic() + guard.hello_timeout_s
        self._has_shown_token = False
        self._denial: AccessDenied | None = None
        self._deny_at = 0.0
        #: Whether nothing more is read: the refusal waits for its time.
        self.is_decided = False
        #: Whether the client understands an error: it has begun with a hello of version 2.
        self.knows_errors = False

    @property
    def is_denied(self) -> bool:
        """Whether it has shown no token or certificate that counts."""
        return self._denial is not None

    def passes(self, has_come: bool = True) -> bool:
        """Look at what has come, if it has; return whether the connection may be served now.

        AccessDenied when it may never be; ProtocolError for nonsense, and when it takes too long;
        OSError when it is lost.
        """
        if has_come and not self.is_decided:
            try:
                if self._has_begun():
                    return True
            except AccessDenied as error:  # of TLS
                self._deny(str(error))
                self.is_decided = True
        now = time.monotonic()
        if self._denial is not None and now >= (
            self._deny_at if self.is_decided else self._deadline
        ):
            raise self._denial
        if self._denial is None and now >= self._deadline:
            raise TooLate(
                f"it has not begun within {self._guard.hello_timeout_s:g} s (--hello-timeout)"
            )
        return False

    def refuse(self, code: ErrorCode, text: str) -> None:
        """Close the connection, and say why."""
        if self.knows_errors:
            with contextlib.suppress(OSError, ValueError):
                self.messages.send_now(binary.encode_error(code, text))
        self.messages.close()

    def _has_begun(self) -> bool:
        """Return whether the first message has come, and begins as it should."""
        begun = self._begun()
        if not self.messages.has_message and len(begun) < _TELLING_BYTES:
            return False
        if begun.startswith(TOKEN_HEAD) and not self._has_shown_token:
            return self._takes_token() and self._has_begun()
        if self._guard.tokens is not None and not self._has_shown_token:
            self._deny("it has shown no token (RELAAX_TOKEN)")
        self.knows_errors = binary.is_hello(begun)
        if self._denial is not None:
            self.is_decided = True
            return False
        if not self.knows_errors and begun[:1] not in _JSON_BEGINS:
            told = begun[:_TELLING_BYTES]  # and no more: it may be a second token
            raise ProtocolError(f"its first message begins with {told!r}, as none of RLX does")
        return self.messages.has_message or len(begun) >= _ENOUGH_BYTES

    def _begun(self) -> bytes:
        try:
            return self.messages.begun_now()
        except PlainPeer as error:
            self._deny(str(error))
            self.messages.go_on_without_tls()  # to find out whether it understands an error
            return self.messages.begun_now()

    def _takes_token(self) -> bool:
        """Check the token when all of it is there; return whether it is.

        Where no token is asked for, one that is shown is not looked at.
        """
        self.messages.max_received_bytes = MAX_TOKEN_MESSAGE_BYTES
        payload, tokens = self.messages.receive_now(), self._guard.tokens
        if payload is None:
            return False
        self.messages.max_received_bytes = self._max_received_bytes
        self._has_shown_token = True
        if tokens is not None and not tokens.allows(shown_token(payload), Right.PLAY):
            self._deny("its token does not allow it to play")
        return True

    def _deny(self, reason: str) -> None:
        """Refuse the connection, when it is known how to say that, and not at once."""
        if self._denial is not None:
            return
        delay_s = self._guard.refusals.add("RLX", host_of(self.peer), reason)
        self._denial, self._deny_at = AccessDenied(reason), time.monotonic() + delay_s
