"""A session with an RLX server, for one environment, in either version of the protocol."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.client.action_masks import named_state
from relaax.client.checks import as_observations, checked_action, checked_state, required_numbers
from relaax.client.server_connection import ServerConnection, StepsSession
from relaax.observations import Observations, named
from relaax.protocol.binary import Metric
from relaax.protocol.json import (
    Act,
    RewardAndAct,
    RewardAndReset,
    decode_action,
    decode_score,
    encode_request,
)
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Steps

#: As JSON, a list of so many numbers is smaller and faster than a compressed array.
MAX_LISTED_VALUES = 64


class JsonSession:
    """Version 1; unless ``takes_anything``, its states are numbers, as in version 2.

    Every method but ``metric`` raises ``Failure`` when the connection is lost. ``action`` is the
    executed action of the step; None if the chosen one was executed.
    """

    def __init__(self, connection: ServerConnection, *, takes_anything: bool) -> None:
        self._connection = connection
        self._takes_anything = takes_anything
        self._score = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._connection.is_open

    def start(self, state: Any) -> Any:
        """Begin an episode and return its first action."""
        action = self._connection.ask(encode_request(Act(self._said(state))), decode_action)
        self._score = 0.0
        return action

    def step(self, reward: float, state: Any, action: Any = None) -> Any:
        """Report a step and return the next action."""
        request = RewardAndAct(reward, self._said(state), _as_sent(action))
        next_action = self._connection.ask(encode_request(request), decode_action)
        self._score += float(reward)
        return next_action

    def terminate(self, reward: float, action: Any = None) -> float:
        """Report the last step and return the score, which is the server's."""
        request = RewardAndReset(reward, _as_sent(action))
        score = self._connection.ask(encode_request(request), decode_score)
        self._connection.has_ended_an_episode = True
        self._score = 0.0
        return score

    def truncate(self, reward: float, state: Any, action: Any = None) -> float:
        """Report the last step; return the score, counted here: version 1 has no message for it."""
        self.step(reward, state, action)
        self._connection.has_ended_an_episode = True
        score, self._score = self._score, 0.0
        return score

    def metric(self, name: str, y: float, x: float | None) -> None:
        """Report a number."""
        self._connection.tell(encode_request(Metric(name, y, x)))

    def _said(self, state: Any) -> Any:
        state = named_state(state, None)
        if not self._takes_anything:
            checked_state(state)
        return as_listed(state)


class BinarySession(StepsSession):
    """Version 2, with one environment; its methods are those of ``JsonSession``."""

    _ONLY = np.zeros(1, np.int64)

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection, 1)

    def start(self, state: Any) -> Any:
        """Begin an episode and return its first action."""
        steps = self._steps(START, 0.0, self._row(state), ())
        return _as_action(self.ask(steps).actions)

    def step(self, reward: float, state: Any, action: Any = None) -> Any:
        """Report a step and return the next action."""
        observations = self._row(state)
        if action is not None:
            steps = self._steps(0, reward, observations, (), action)
            return _as_action(self.ask(steps).actions)
        return _as_action(self.step_all(np.array([reward], np.float64), observations))

    def terminate(self, reward: float, action: Any = None) -> float:
        """Report the last step and return the episode's score."""
        return self._end(TERMINATED, reward, (), action)

    def truncate(self, reward: float, state: Any, action: Any = None) -> float:
        """Report the last step of an episode that was cut off and return its score."""
        return self._end(TRUNCATED | FINAL, reward, self._row(state), action)

    def _row(self, state: Any) -> Observations:
        """Return a state, by the server's names, as a batch of one."""
        return as_row(checked_state(named_state(state, self.asked)))

    def _end(self, flags: int, reward: float, final: Any, action: Any) -> float:
        answers = self.ask(self._steps(flags, reward, (), final, action))
        (score,) = answers.scores.tolist()
        return float(score)

    def _steps(
        self, flags: int, reward: float, observations: Any, finals: Any, action: Any = None
    ) -> Steps:
        executed = () if action is None else checked_action(action)[np.newaxis]
        flags |= 0 if action is None else EXECUTED
        return Steps(
            self._ONLY,
            np.array([flags], np.uint8),
            np.array([reward], np.float64),
            observations,
            finals,
            executed,
        )


Session: TypeAlias = JsonSession | BinarySession


def _as_sent(action: Any) -> Any:
    """Return an executed action as version 1 carries it: a number, or an array."""
    if action is None:
        return None
    array = checked_action(action)
    return array if array.ndim else array.item()


def _as_action(actions: Any) -> Any:
    """Return the only one of ``actions`` [1, ...]: a number, or an array."""
    (action,) = actions
    return action.item() if action.ndim == 0 else action


def as_row(observations: Observations) -> Observations:
    """Return the observations of one environment as a batch of one."""
    if isinstance(observations, dict):
        return {name: array[np.newaxis] for name, array in observations.items()}
    return observations[np.newaxis]


def as_listed(state: Any) -> Any:
    """Return a state as version 1 sends it.

    A number or a small vector becomes plain numbers, but not an array of bytes, which an algorithm
    may scale. A dict of numbers, lists and arrays is flattened. Anything else stays.
    """
    if isinstance(state, dict) and as_observations(state) is not None:
        return {name: as_listed(value) for name, value in named(state).items()}
    if isinstance(state, np.ma.MaskedArray):
        state = required_numbers("the state", state)
    if isinstance(state, np.uint8):
        return np.asarray(state)
    if isinstance(state, np.ndarray) and _is_listed(state):
        return state.tolist()
    return state


def _is_listed(array: npt.NDArray[Any]) -> bool:
    return array.ndim <= 1 and array.size <= MAX_LISTED_VALUES and array.dtype != np.uint8
