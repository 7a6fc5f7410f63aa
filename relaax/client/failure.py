"""What a client raises."""

from relaax.protocol.binary import ErrorCode

#: Trying again would end in the same way.
_FINAL = (ErrorCode.PROTOCOL, ErrorCode.MISMATCH, ErrorCode.VERSION, ErrorCode.TRAINING_IS_OVER)


class Failure(Exception):
    """The server cannot be reached, has closed the connection or broke the protocol.

    ``message`` says which. The connection is closed and the server's part of the episodes is lost:
    reset the environment and call ``init``, which connects again. ``code`` is the server's own
    reason, if it gave one (``relaax.protocol.binary.ErrorCode``).
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    @property
    def is_final(self) -> bool:
        """Whether another attempt would fail too: after a mistake, or the end of the training."""
        return self.code in _FINAL


def not_connected() -> Failure:
    """Return the failure of a message that needs a connection where there is none."""
    return Failure("there is no connection; start an episode with init")
