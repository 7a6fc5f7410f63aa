"""A session with an RLX server, for one environment, in either version of the protocol."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.client.line import Line
from relaax.common.protocol import (
    Act,
    RewardAndAct,
    RewardAndReset,
    ScalarMetric,
    binary,
    decode_action,
    decode_score,
    encode_request,
)
from relaax.common.protocol.binary import Metric
from relaax.common.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

Array = npt.NDArray[Any]

#: numpy's kinds of numbers: bool, signed and unsigned integer, float.
_NUMBERS = "biuf"


class Session(Protocol):
    """What ``Client`` needs of a version of the protocol; every method raises ``Failure``."""

    def start(self, state: Any) -> Any:
        """Begin an episode and return its first action."""

    def step(self, reward: float, state: Any) -> Any:
        """Report a step and return the next action."""

    def terminate(self, reward: float) -> float:
        """Report the last step and return the episode's score."""

    def truncate(self, reward: float, state: Any) -> float:
        """Report the last step of an episode that was cut off and return its score."""

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""


class JsonSession:
    """Version 1."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._score = 0.0

    def start(self, state: Any) -> Any:
        """Begin an episode and return its first action."""
        action = self._line.ask(encode_request(Act(state)), decode_action)
        self._score = 0.0
        return action

    def step(self, reward: float, state: Any) -> Any:
        """Report a step and return the next action."""
        action = self._line.ask(encode_request(RewardAndAct(reward, state)), decode_action)
        self._score += float(reward)
        return action

    def terminate(self, reward: float) -> float:
        """Report the last step and return the score, which is the server's."""
        score = self._line.ask(encode_request(RewardAndReset(reward)), decode_score)
        self._score = 0.0
        return score

    def truncate(self, reward: float, state: Any) -> float:
        """Report the last step; the score is counted here, since version 1 has no word for this."""
        self.step(reward, state)
        score, self._score = self._score, 0.0
        return score

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""
        self._line.tell(encode_request(ScalarMetric(name, y, x)))


class BinarySession:
    """Version 2, with one environment on the line."""

    _ONLY = np.zeros(1, np.int64)

    def __init__(self, line: Line) -> None:
        self._line = line
        self._writer = binary.StepsWriter()
        self._reader = binary.AnswersReader()

    def start(self, state: Any) -> Any:
        """Begin an episode and return its first action."""
        return self._act(START, 0.0, state)

    def step(self, reward: float, state: Any) -> Any:
        """Report a step and return the next action."""
        return self._act(0, reward, state)

    def terminate(self, reward: float) -> float:
        """Report the last step and return the episode's score."""
        return self._end(TERMINATED, reward, ())

    def truncate(self, reward: float, state: Any) -> float:
        """Report the last step of an episode that was cut off and return its score."""
        return self._end(TRUNCATED | FINAL, reward, required_array(state)[np.newaxis])

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""
        self._line.tell(binary.encode_metric(Metric(name, float(y), x)))

    def _act(self, flags: int, reward: float, state: Any) -> Any:
        observation = required_array(state)[np.newaxis]
        steps = self._steps(flags, reward, observation, ())
        answers = self._line.ask(self._writer.write(steps), self._reader.read)
        (action,) = answers.actions
        return action.item() if action.ndim == 0 else action

    def _end(self, flags: int, reward: float, final: Any) -> float:
        answers = self._line.ask(
            binary.encode_steps(self._steps(flags, reward, (), final)), binary.decode_answers
        )
        (score,) = answers.scores.tolist()
        return float(score)

    def _steps(self, flags: int, reward: float, observations: Any, finals: Any) -> Steps:
        return Steps(
            self._ONLY,
            np.array([flags], np.uint8),
            np.array([reward], np.float64),
            observations,
            finals,
            is_plain=flags == 0,
        )


def as_array(state: Any) -> Array | None:
    """Return a state as an array of numbers; None for what is none: text, mappings, ragged lists.

    An array keeps its type; plain numbers become 64-bit floats.
    """
    if isinstance(state, np.ndarray):
        return state if state.dtype.kind in _NUMBERS else None
    try:
        array = np.asarray(state)
    except ValueError:
        return None
    if array.dtype.kind not in _NUMBERS:
        return None
    return array if isinstance(state, np.generic) else array.astype(np.float64)


def required_array(state: Any) -> Array:
    """Return a state as an array of numbers; TypeError for what is none."""
    array = as_array(state)
    if array is None:
        raise TypeError(
            f"this state is no array of numbers: {type(state).__name__}; RLX version 2 carries "
            "nothing else, Client(..., protocol=1) carries whatever JSON can hold"
        )
    return array
