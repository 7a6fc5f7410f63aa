"""The exception of clients."""

from relaax.protocol.binary import ErrorCode

#: The server refuses the client's message.
_REFUSALS = (ErrorCode.PROTOCOL, ErrorCode.MISMATCH, ErrorCode.VERSION, ErrorCode.ACCESS)

#: The next episode would end in the same way as this one.
_ENDS_EVERY_EPISODE = (ErrorCode.TRAINING_IS_OVER, ErrorCode.ALGORITHM)


class Failure(Exception):
    """The server cannot be reached, has closed the connection or broke the protocol.

    ``message`` gives the cause. The connection is closed and the server's part of the episodes is
    lost: reset the environment and call ``init``, which connects again. ``code`` is the server's
    reason, if it gave one (``relaax.protocol.binary.ErrorCode``).
    """

    def __init__(self, message: str, code: int | None = None, *, gave_up: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        #: Whether all attempts that ``reconnect`` allows have failed.
        self.gave_up = gave_up

    @property
    def is_final(self) -> bool:
        """Whether a program should stop trying.

        The training is over, or its algorithm has failed; the server refuses the client's message;
        or all attempts to connect have failed.
        """
        return self.ends_every_episode or self.is_refusal or self.gave_up

    @property
    def is_refusal(self) -> bool:
        """Whether the server refuses the client's message: a mistake, and not an accident."""
        return self.code in _REFUSALS

    @property
    def training_is_over(self) -> bool:
        """Whether the server has ended the training as it should: a program's work is done."""
        return self.code == ErrorCode.TRAINING_IS_OVER

    @property
    def ends_every_episode(self) -> bool:
        """Whether no further episode can be played: the training is over, or its algorithm failed.

        A mistake in one episode, for example a state of another shape, need not be in the next one.
        """
        return self.code in _ENDS_EVERY_EPISODE
