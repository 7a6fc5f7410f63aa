"""The state of one connection, apart from the loop that serves it."""

import logging
import time

from relaax.errors import AgentError, InvalidState, NoRoom, ProtocolError
from relaax.protocol import MessageConnection, PeerClosed, binary
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.worker.session import Session
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)


class Connection:
    """The transport of a client's messages; ``session`` has their content."""

    def __init__(
        self, messages: MessageConnection, session: Session, peer: str, timeout_s: float | None
    ) -> None:
        self.messages = messages
        self.peer = peer
        #: The descriptor that is polled; it stays known after the connection is closed.
        self.descriptor = messages.fileno()
        self.session = session
        #: Of the token that it has shown, where tokens are asked for.
        self.token_digest: bytes | None = None
        #: Messages that were handled since somebody looked.
        self.handled = 0
        #: Metrics among them.
        self.metrics = 0
        #: Whether the connection is closed as soon as everything is sent.
        self.is_leaving = False
        self._has_rested = False
        self._closes_at = None if timeout_s is None else time.monotonic() + timeout_s
        self._goodbye = "the connection has lasted as long as it may; connect again"

    @property
    def time_is_up(self) -> bool:
        """Whether the connection should be closed at the next end of an episode."""
        return self._closes_at is not None and time.monotonic() >= self._closes_at

    def leave_soon(self) -> None:
        """Let the time be up from now on: the server stops when all connections have left."""
        self._closes_at = time.monotonic()
        self._goodbye = "the server is about to stop; connect again"

    def send(self, payload: bytes) -> None:
        """Send as much as the client takes at once; InvalidState for more than a frame may hold."""
        try:
            self.messages.send_now(payload)
        except ValueError as error:
            raise InvalidState(f"an answer cannot be sent: {error}") from error

    def goodbye(self) -> bytes | None:
        """Return the message for the end of the time; None in version 1."""
        if not self.session.knows_errors:
            return None
        return binary.encode_error(ErrorCode.GO_ELSEWHERE, self._goodbye)

    def note_rest(self, metrics: float) -> None:
        """Log, the first time, that no more is read within a second that began with ``metrics``.

        Where many connections rest at once, a few lines name some of them, with their number.
        """
        if not self._has_rested:
            self._has_rested = True
            _log.warning(
                "%s has sent %d metrics in a second: further messages wait for the next one, "
                "steps too, then and whenever it does so again (--max-metric-rate)",
                self.peer,
                metrics,
                extra=of_kind("rests"),
            )

    def part(self, code: ErrorCode, text: str) -> None:
        """Close the connection with a reason, unless the client has to be waited for."""
        if self.session.knows_errors and not self.messages.is_unsent:
            try:
                self.messages.send_now(binary.encode_error(code, text))
            except (OSError, ValueError, ProtocolError) as error:  # it has left, or frames are tiny
                _log.info(
                    "the reason could not be sent to %s: %s",
                    self.peer,
                    error,
                    extra=of_kind("unsaid"),
                )
        self.messages.close()

    def part_because_of(self, error: Exception) -> None:
        """Close the connection because of ``error``, which is logged."""
        if isinstance(error, PeerClosed):
            self.messages.close()
            return
        if isinstance(error, OSError):
            _log.info("lost the connection from %s: %s", self.peer, error, extra=of_kind("lost"))
            self.messages.close()
            return
        code = _code_of(error)
        _log.log(
            logging.INFO if code is ErrorCode.TRAINING_IS_OVER else logging.WARNING,
            "closing the connection from %s: %s",
            self.peer,
            error,
            extra=of_kind(f"closed {code.name}"),
        )
        self.part(code, str(error))


def _code_of(error: Exception) -> ErrorCode:
    """Return the code of an error for the client."""
    match error:
        case binary.Error():
            return ErrorCode(error.code)
        case InvalidState():
            return ErrorCode.MISMATCH
        case ProtocolError():
            return ErrorCode.PROTOCOL
        case AgentError():
            return ErrorCode.ALGORITHM
        case NoRoom():
            return ErrorCode.SERVER
    raise error
