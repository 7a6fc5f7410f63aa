"""The role of choosing for agents of other processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.roles import Version
from relaax.observations import Observations

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: The names of arrays of questions and answers; named observations and extras have theirs behind a
#: prefix.
OBSERVATION, RECURRENT_STATE, NOISE, ACTION = "observation", "recurrent_state", "noise", "action"
OBSERVATIONS, EXTRAS = "observation/", "extra/"


class ArrayForm(NamedTuple):
    """The type of an array's numbers, and its shape for one environment."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """All that a choice depends on besides the parameters, for B environments."""

    #: The policy's name.
    policy: str
    #: [B, ...], or such arrays by name.
    observations: Observations
    #: float32 [2, B, H]; H is 0 without a recurrent layer.
    recurrent_state: FloatArray
    #: float32 [B, ...]: the distribution's, or that of the exploration.
    noise: FloatArray


class ChoiceTimes(NamedTuple):
    """Where the time of a choice goes, in seconds."""

    #: The evaluation of the network, here or at an inference server.
    inference: float
    #: Waiting at an inference server, and the rest of the time until its answer is there; None
    #: where this process has the policy.
    queue: float | None = None
    network: float | None = None


class ServerTimes(NamedTuple):
    """Where the time of a question goes at the process that answers it, in seconds."""

    #: From the moment when the question has come until the evaluation begins.
    queue: float
    #: The evaluation, with other questions that waited.
    inference: float


@dataclass(frozen=True)
class Answer:
    """The choices for a question, and the version of the parameters that they were made with."""

    #: [B, ...]
    actions: Array
    #: [B, ...] by name: numbers to be recorded.
    extras: Mapping[str, Array]
    #: float32 [2, B, H], for the next step.
    recurrent_state: FloatArray
    version: Version
    #: The global step, as far as it is known.
    global_t: int = 0
    #: None where the answer was not waited for.
    times: ServerTimes | None = None


class Answering(Protocol):
    """Answers by policies that it has."""

    def forms(self) -> Mapping[str, ArrayForm]:
        """Return the arrays of questions and answers by name.

        Processes whose forms differ have other configurations.
        """

    def choose(self, question: Question) -> Answer:
        """Choose; ValueError for a question that does not fit, BridgeError for want of a policy."""


class Inference(Protocol):
    """Asks processes that have the policies, where an agent has none of its own."""

    def expect(self, forms: Mapping[str, ArrayForm]) -> None:
        """Take note of the arrays of this process: those that answer must have the same."""

    def choose(self, question: Question) -> Answer:
        """Choose.

        ConfigurationError, which names the arrays that differ, where another configuration answers.
        BridgeError where no answer comes for a long time.
        """

    def close(self) -> None:
        """Release the transport."""
