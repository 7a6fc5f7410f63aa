"""The proofs that a connection shows before it is served, and its refusal."""

import contextlib
import time
from dataclasses import dataclass, field

from relaax.address import host_of
from relaax.errors import AccessDenied, ProtocolError
from relaax.net.access import Refusals, Right, TokenFile
from relaax.net.access.tokens import digest_of
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.protocol.first_bytes import (
    JSON_BEGINS,
    MAX_TOKEN_MESSAGE_BYTES,
    TOKEN_HEAD,
    shown_token,
)
from relaax.protocol.framing import TlsPeer
from relaax.protocol.tls_socket import PlainPeer

#: So much of a first message shows its kind.
_TELLING_BYTES = 4

#: All of it must be there before it is served, or so much: a state of version 1 may be large.
_ENOUGH_BYTES = 64 * 1024

#: Sent to clients whose token was right at first: there may be a newer one.
NOT_ANY_MORE = (
    "its token is not allowed any more, as it was renewed, or deleted from the server's"
    " --auth-token-file; connect again with a newer one"
)


@dataclass(frozen=True)
class Guard:
    """The conditions for connections to an RLX server."""

    #: None where it asks for no token.
    tokens: TokenFile | None
    #: How long a connection may take for its proofs.
    hello_timeout_s: float
    refusals: Refusals = field(default_factory=Refusals)


class TurnedAway(ProtocolError):
    """A connection is closed before it is served; ``kind`` limits the lines of the log."""

    def __init__(self, text: str, kind: str, code: ErrorCode = ErrorCode.PROTOCOL) -> None:
        super().__init__(text)
        self.kind, self.code = kind, code


class Entrance:
    """A connection that has not proved yet that it may be served; until then it costs little.

    The proof is the right token, where there are tokens, and a whole first message that begins like
    one of RLX, or much of a large one; inside TLS, if the port speaks that. A failed connection is
    refused with the reason if its first message, behind the token, is of a version that has errors.
    """

    def __init__(
        self, messages: FrameConnection, peer: str, guard: Guard, refusal: str | None = None
    ) -> None:
        self.messages = messages
        self.peer = peer
        #: The reason for a refusal, whatever it proves; None if it may be served.
        self.refusal = refusal
        #: Of the token that it has shown, where that is asked for and allows it to play.
        self.token_digest: bytes | None = None
        self._guard = guard
        self._max_received_bytes = messages.max_received_bytes
        self._deadline = time.monotonic() + guard.hello_timeout_s
        self._has_shown_token = False
        self._denial: AccessDenied | None = None
        #: Whether the client understands an error: it has begun with a hello of version 2, or of
        #: TLS. Any answer without TLS shows a client with TLS that the port does not speak it; a
        #: close does not.
        self.knows_errors = False

    @property
    def is_denied(self) -> bool:
        """Whether it has shown no token or certificate that counts."""
        return self._denial is not None

    def passes(self, has_come: bool = True) -> bool:
        """Read the bytes that have come; return whether the connection may be served now.

        AccessDenied when it may never be; TurnedAway when it takes too long, and when its token has
        been renewed or deleted since it was read; ProtocolError for nonsense; OSError when it is
        lost.
        """
        if has_come:
            try:
                if self._has_begun():
                    return True
            except AccessDenied as error:  # of TLS, or already judged
                self._deny(error)
                raise
        if time.monotonic() < self._deadline:
            return False
        raise self._denial or TurnedAway(
            f"it has not begun within {self._guard.hello_timeout_s:g} s (--hello-timeout)", "late"
        )

    def refuse(self, code: ErrorCode, text: str) -> None:
        """Close the connection with a reason."""
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
            self._deny(AccessDenied("no token was shown (RELAAX_TOKEN, RELAAX_TOKEN_FILE)"))
        self.knows_errors = binary.is_hello(begun)
        if self._denial is not None:
            raise self._denial
        if not self.knows_errors and begun[:1] not in JSON_BEGINS:
            told = begun[:_TELLING_BYTES]  # and no more: it may be a second token
            raise ProtocolError(
                f"its first message begins with {told!r}, unlike any message of RLX"
            )
        has_come = self.messages.has_message or len(begun) >= _ENOUGH_BYTES
        if has_come:
            self._require_token_still()
        return has_come

    def _begun(self) -> bytes:
        try:
            return self.messages.begun_now()
        except PlainPeer as error:
            self._deny(AccessDenied(str(error)))
            self.messages.go_on_without_tls()  # to find out whether it understands an error
            return self.messages.begun_now()
        except TlsPeer:
            self.knows_errors = True
            raise

    def _takes_token(self) -> bool:
        """Check the token when all of it is there; return whether it is.

        An unnecessary token is not looked at, nor the token of a client that is refused already:
        without a certificate, nobody learns whether a token is right.
        """
        self.messages.max_received_bytes = MAX_TOKEN_MESSAGE_BYTES
        payload, tokens = self.messages.receive_now(), self._guard.tokens
        if payload is None:
            return False
        self.messages.max_received_bytes = self._max_received_bytes
        self._has_shown_token = True
        if tokens is not None and self._denial is None:
            digest = digest_of(shown_token(payload) or b"")
            reason = tokens.why_refused(digest, Right.PLAY)
            if reason is None:
                self.token_digest = digest
            else:
                self._deny(AccessDenied(reason))
        return True

    def _require_token_still(self) -> None:
        """Raise TurnedAway where the token has been renewed or deleted since it was shown."""
        tokens, digest = self._guard.tokens, self.token_digest
        if tokens is None or digest is None or tokens.allows_digest(digest, Right.PLAY):
            return
        raise TurnedAway(NOT_ANY_MORE, "token ended", ErrorCode.GO_ELSEWHERE)

    def _deny(self, denial: AccessDenied) -> None:
        """Take note that the connection has shown nothing, unless it is refused already."""
        if self._denial is None:
            self._denial = denial
            self._guard.refusals.add("RLX", host_of(self.peer), str(denial))
