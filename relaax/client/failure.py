"""What a client raises."""

from relaax.protocol.binary import ErrorCode

#: Trying again would end in the same way.
_FINAL = (
    ErrorCode.PROTOCOL,
    ErrorCode.MISMATCH,
    ErrorCode.VERSION,
    ErrorCode.TRAINING_IS_OVER,
    ErrorCode.ALGORITHM,
)

#: The next episode would end in the same way as this one.
_ENDS_EVERY_EPISODE = (ErrorCode.TRAINING_IS_OVER, ErrorCode.ALGORITHM)


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

    @property
    def ends_every_episode(self) -> bool:
        """Whether no further episode can be played: the training is over, or its algorithm failed.

        A mistake in one episode, such as a state that does not fit, need not be in the next one.
        """
        return self.code in _ENDS_EVERY_EPISODE


def not_connected() -> Failure:
    """Return the failure of a message that needs a connection where there is none."""
    return Failure("there is no connection; start an episode with init")
