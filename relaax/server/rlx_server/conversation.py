"""The two versions of the RLX protocol, as a worker sees them: bytes in, steps and answers."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Hello, Metric
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json import messages
from relaax.steps import START, TERMINATED, Steps

FloatArray = npt.NDArray[np.float64]
Actions: TypeAlias = Sequence[Any] | npt.NDArray[Any]


class Conversation(Protocol):
    """What a worker and its client say to each other, in one version of the protocol."""

    #: How many environments the connection carries.
    environments: int

    def decode(self, payload: bytes) -> Steps | Metric:
        """Return what a client says; ProtocolError for nonsense."""

    def encode(self, steps: Steps, actions: Actions, scores: FloatArray) -> bytes:
        """Return the answer to ``steps``: A actions, and the scores of E episodes."""

    def encode_error(self, code: ErrorCode, text: str) -> bytes | None:
        """Return what is said before the connection is closed; None if nothing can be."""


class JsonConversation:
    """Version 1: one environment, and no word for an error."""

    environments = 1

    _ONLY = np.zeros(1, np.int64)

    def __init__(self, max_state_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_state_bytes = max_state_bytes

    def decode(self, payload: bytes) -> Steps | Metric:
        """Return what a client says."""
        match messages.decode_request(payload, self._max_state_bytes):
            case messages.Act(state):
                return self._steps(START, 0.0, [state])
            case messages.RewardAndAct(reward, state):
                return self._steps(0, reward, [state])
            case messages.RewardAndReset(reward):
                return self._steps(TERMINATED, reward, [])
            case messages.ScalarMetric(name, y, x):
                return Metric(name, y, x)

    def encode(self, steps: Steps, actions: Actions, scores: FloatArray) -> bytes:
        """Return the action, or the score of an episode that is over."""
        if len(scores):
            return messages.encode_score(float(scores[0]))
        return messages.encode_action(actions[0])

    def encode_error(self, code: ErrorCode, text: str) -> bytes | None:
        """Return nothing: a version-1 client cannot be told."""
        return None

    def _steps(self, flags: int, reward: float, states: list[Any]) -> Steps:
        return Steps(self._ONLY, np.array([flags], np.uint8), np.array([reward]), states, ())


class BinaryConversation:
    """Version 2."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self.environments = hello.environments
        self._reader = binary.StepsReader(hello.environments)
        self._writer = binary.AnswersWriter()

    def decode(self, payload: bytes) -> Steps | Metric:
        """Return what a client says."""
        return binary.decode_metric(payload) or self._reader.read(payload)

    def encode(self, steps: Steps, actions: Actions, scores: FloatArray) -> bytes:
        """Return the actions and scores."""
        try:
            array = np.asarray(actions)
        except ValueError as error:
            raise InvalidState(f"the algorithm's actions are no array: {error}") from error
        return self._writer.write(steps, array, scores)

    def encode_error(self, code: ErrorCode, text: str) -> bytes | None:
        """Return the error's code and text."""
        return binary.encode_error(code, text)
