"""A client's conversation with the agents of a worker, without input and output."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Evaluation
from relaax.protocol import binary, json
from relaax.protocol.binary import ErrorCode, Hello, Metric
from relaax.protocol.connection import Payload
from relaax.server.rlx_server.worker.hello import Codec, begin
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import IntArray, Steps

FloatArray = npt.NDArray[np.float64]
Actions: TypeAlias = Sequence[Any] | npt.NDArray[Any]

_NO_SLOTS: IntArray = np.zeros(0, np.int64)


class Slots(Protocol):
    """The side of a responder that a session uses."""

    def open(self, hello: Hello) -> IntArray:
        """Return slots for the environments of a client; see ``Responder``."""

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""

    def store(self, metric: Metric) -> None:
        """Store a client's own metric."""


class Session:
    """Takes a client's messages in their order, and encodes the answers.

    ``number`` is its owner's name for it. ``slots_of`` returns, for a kind of evaluation, the owner
    of its environments' slots. ``on_begin`` is called once the first message is understood, with
    the number of bytes that a message may have.
    """

    def __init__(
        self,
        number: int,
        settings: WorkerSettings,
        slots_of: Callable[[Evaluation | None], Slots],
        on_begin: Callable[[int], object] = lambda most_bytes: None,
    ) -> None:
        self.number = number
        self._settings = settings
        self._slots_of = slots_of
        self._on_begin = on_begin
        #: The codec: of version 1 until the client says hello.
        self._codec: Codec = json.ServerCodec()
        #: Whether the first message has come, and was understood.
        self.has_begun = False
        #: Whether the client has said hello: version 1 has no word for an error.
        self.knows_errors = False
        #: How its environments evaluate; None where they are learnt from.
        self.evaluation: Evaluation | None = None
        #: int64 [environments]: the slots of the client's environments.
        self.slots = _NO_SLOTS

    @property
    def is_training(self) -> bool:
        """Whether its environments are known, and learnt from."""
        return self.has_begun and self.evaluation is None

    def take(self, payload: Payload, *, is_over: bool = False) -> Steps | bytes | None:
        """Return steps that want an answer, or a welcome to send; None for a metric, now stored.

        ProtocolError, ``binary.Error``, AgentError or NoRoom for a message that cannot be used, or
        that comes when the training ``is_over``: the session is over then.
        """
        if is_over:
            self.knows_errors |= not self.has_begun and binary.is_hello(payload)
            raise binary.Error(ErrorCode.TRAINING_IS_OVER, "the training is over")
        if not self.has_begun and (welcome := self._begin(payload)) is not None:
            return welcome
        message = self._codec.decode(payload)
        if isinstance(message, Steps):
            return message
        self._slots_of(self.evaluation).store(message)
        return None

    def encoded(self, actions: Actions, scores: FloatArray) -> bytes:
        """Return the answer to the steps taken last: A actions, and the scores of E episodes.

        TypeError or ValueError for actions that cannot be sent.
        """
        return self._codec.encode(actions, scores)

    def close(self) -> None:
        """Forget the environments."""
        if self.has_begun:
            self._slots_of(self.evaluation).close_slots(self.slots)

    def _begin(self, first: Payload) -> bytes | None:
        """Take the first message; return the welcome to a hello."""
        self.knows_errors = binary.is_hello(first)
        beginning = begin(self._settings, first)
        hello = beginning.hello
        self.slots = self._slots_of(hello.evaluate).open(hello)
        self.evaluation, self._codec, self.has_begun = hello.evaluate, beginning.codec, True
        self._on_begin(self._settings.most_bytes(hello.environments))
        return beginning.welcome
