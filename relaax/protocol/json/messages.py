"""The messages of RLX version 1: JSON arrays, verb first.

The state of a request is encoded twice: it is a JSON *string* that holds the JSON of the state.
The action of a reply is not.
"""

import math
import re
import reprlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.messages import Answers, Metric, answer_flags
from relaax.protocol.connection import Payload
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json import codec as json_codec
from relaax.protocol.nesting import is_text
from relaax.steps import (
    EXECUTED,
    REWARD_NOT_ALLOWED,
    START,
    TERMINATED,
    TRUNCATED,
    AgentName,
    Steps,
    is_reward_allowed,
)

MAX_METRIC_NAME_BYTES = 255

#: The longest name of an agent, and of its group; the largest index is the same number.
MAX_AGENT_BYTES = 64
MAX_AGENT_INDEX = 254

#: The beginning of a first message that names the agent.
_AGENT = re.compile(rb'\s*\[\s*"agent"')

#: The only environment of a connection.
_ONLY = np.zeros(1, np.int64)


class ServerCodec:
    """A server's end: decodes messages about the one environment, and encodes the answers."""

    def __init__(self, max_state_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_state_bytes = max_state_bytes

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return a client's message; ProtocolError for nonsense.

        The arrays of its state may unpack to ``max_state_bytes``, and so may its action.
        """
        verb, arguments = _decode_verb(payload, self._max_state_bytes)
        parse = REQUEST_PARSERS.get(verb)
        if parse is None:
            verbs = ", ".join(REQUEST_PARSERS)
            raise ProtocolError(f"the verb {reprlib.repr(verb)} is unknown; the verbs are {verbs}")
        return parse(arguments, self._max_state_bytes)

    def encode(
        self, actions: Sequence[Any] | npt.NDArray[Any], scores: npt.NDArray[np.float64]
    ) -> bytes:
        """Return the action, or the score of an episode that is over.

        TypeError or ValueError for an action that JSON cannot hold.
        """
        if len(scores):
            return _encode(["reset", float(scores[0])])
        return _encode(["act", actions[0]])


def decode_agent(first: Payload) -> AgentName | None:
    """Return the agent that the first message of a connection names; None for another message.

    ProtocolError for a name that is not allowed. The group is empty where the message has none.
    """
    if _AGENT.match(bytes(first[:32])) is None:
        return None
    verb, arguments = _decode_verb(first, 0)
    _check_count(verb, arguments, 1, 2, 3)
    name, index, group = arguments + [0, ""][len(arguments) - 1 :]
    return AgentName(_agent_text("name", name, 1), _agent_text("group", group, 0), _index(index))


class ClientCodec:
    """A client's end: encodes steps of its one environment and decodes the answers, in turns.

    States and actions are anything that JSON can hold. There is no message for an episode that is
    cut off: its last step is reported like any other, and its score is counted here.
    """

    def __init__(self) -> None:
        self._flags = 0
        self._score = 0.0

    def encode_all(self, rewards: npt.NDArray[np.float64], observations: Sequence[Any]) -> bytes:
        """Return the message of a step in which the episode goes on."""
        return self.encode(Steps(_ONLY, np.zeros(1, np.uint8), rewards, observations, ()))

    def encode(self, steps: Steps) -> bytes:
        """Return the message of a step; ValueError or TypeError for values that JSON cannot hold.

        The step has one state: an observation, or the final one of an episode that is cut off.
        """
        (flags,), (reward,) = steps.flags.tolist(), steps.rewards.tolist()
        states = steps.finals if flags & TRUNCATED else steps.observations
        state = [json_codec.encode(each, what="the state") for each in states]
        if flags & START:
            payload = _encode(["act", *state])
        else:
            verb = "reward_and_reset" if flags & TERMINATED else "reward_and_act"
            payload = _encode([verb, reward, *state, *steps.executed])
        self._flags = flags
        self._score = 0.0 if flags & START else self._score + reward
        return payload

    def encode_metric(self, metric: Metric) -> bytes:
        """Return the message of a metric, which is not answered."""
        x = () if metric.x is None else (metric.x,)
        return _encode(["scalar_metric", metric.name, metric.y, *x])

    def decode(self, payload: Payload) -> Answers:
        """Return the answer to the step that was encoded last; ProtocolError for another one."""
        actions: Any = []
        scores = []
        if self._flags & TERMINATED:
            scores = [_number(_decode_reply(payload, "reset"), "the score of 'reset'")]
        else:
            actions = [_decode_reply(payload, "act")]
        if self._flags & TRUNCATED:
            actions, scores = [], [self._score]
        kinds = answer_flags(np.array([self._flags], np.uint8))
        return Answers(_ONLY, actions, np.array(scores, np.float64), kinds)


def _encode(message: list[Any]) -> bytes:
    return json_codec.encode(message, what=message[0]).encode("ascii")


def _decode_verb(payload: Payload, max_array_bytes: int) -> tuple[str, list[Any]]:
    message = json_codec.decode_utf8(payload, max_array_bytes)
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ProtocolError(
            f"a message is a JSON array that starts with a verb, this is {reprlib.repr(message)}"
        )
    return message[0], message[1:]


def _decode_reply(payload: Payload, expected_verb: str) -> Any:
    verb, arguments = _decode_verb(payload, DEFAULT_MAX_FRAME_BYTES)
    if verb != expected_verb:
        raise ProtocolError(f"the reply {expected_verb!r} was expected, {verb[:32]!r} came")
    _check_count(verb, arguments, 1)
    return arguments[0]


def _parse_act(arguments: list[Any], max_state_bytes: int) -> Steps:
    _check_count("act", arguments, 1)
    return _steps(START, 0.0, [_decode_state("act", arguments[0], max_state_bytes)], None)


def _parse_reward_and_act(arguments: list[Any], max_state_bytes: int) -> Steps:
    verb = "reward_and_act"
    _check_count(verb, arguments, 2, 3)
    reward = _reward(verb, arguments[0])
    state = _decode_state(verb, arguments[1], max_state_bytes)
    return _steps(0, reward, [state], _executed(verb, arguments[2:]))


def _parse_reward_and_reset(arguments: list[Any], max_state_bytes: int) -> Steps:
    verb = "reward_and_reset"
    _check_count(verb, arguments, 1, 2)
    reward = _reward(verb, arguments[0])
    return _steps(TERMINATED, reward, [], _executed(verb, arguments[1:]))


def _steps(flags: int, reward: float, states: list[Any], executed: Any) -> Steps:
    actions = () if executed is None else (executed,)
    flags |= EXECUTED if actions else 0
    return Steps(_ONLY, np.array([flags], np.uint8), np.array([reward]), states, (), actions)


def _parse_scalar_metric(arguments: list[Any], max_state_bytes: int) -> Metric:
    _check_count("scalar_metric", arguments, 2, 3)
    name = arguments[0]
    if not isinstance(name, str):
        raise ProtocolError(f"the name of a metric is a string, this is {reprlib.repr(name)}")
    if not is_text(name) or not 0 < len(name.encode()) <= MAX_METRIC_NAME_BYTES:
        raise ProtocolError(
            f"the name of a metric has 1 to {MAX_METRIC_NAME_BYTES} bytes of UTF-8, "
            f"this is {reprlib.repr(name)}"
        )
    y = _number(arguments[1], f"the value of the metric {name[:64]!r}")
    if len(arguments) == 2 or arguments[2] is None:
        return Metric(name, y)
    return Metric(name, y, _number(arguments[2], f"x of the metric {name[:64]!r}"))


def _agent_text(key: str, value: Any, least: int) -> str:
    if (
        isinstance(value, str)
        and is_text(value)
        and least <= len(value.encode()) <= MAX_AGENT_BYTES
    ):
        return value
    raise ProtocolError(
        f"the {key} of an agent has {least} to {MAX_AGENT_BYTES} bytes of UTF-8, "
        f"this is {reprlib.repr(value)}"
    )


def _index(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_AGENT_INDEX:
        return value
    raise ProtocolError(
        f"the index of an agent is an integer from 0 to {MAX_AGENT_INDEX}, "
        f"this is {reprlib.repr(value)}"
    )


def _refuse_agent(arguments: list[Any], max_state_bytes: int) -> Steps:
    raise ProtocolError("'agent' is the first message of a connection, or none")


def _executed(verb: str, given: list[Any]) -> Any:
    """Return the executed action of a request; None if it is not ``given``."""
    (action,) = given or [None]
    if action is not None and not _is_numeric(action):
        raise ProtocolError(
            f"the executed action of {verb!r} is a number, an array or a list of numbers, "
            f"this is {reprlib.repr(action)}"
        )
    return action


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numeric(each) for each in value)
    return isinstance(value, int | float | np.ndarray) and not isinstance(value, bool)


def _decode_state(verb: str, encoded: Any, max_state_bytes: int) -> Any:
    if not isinstance(encoded, str):
        raise ProtocolError(
            f"the state of {verb!r} is a string that holds JSON, this is {reprlib.repr(encoded)}"
        )
    try:
        return json_codec.decode(encoded, max_state_bytes)
    except ProtocolError as error:
        raise ProtocolError(f"the state of {verb!r}: {error}") from error


def _check_count(verb: str, arguments: list[Any], *allowed: int) -> None:
    if len(arguments) not in allowed:
        counts = " or ".join(str(count) for count in allowed)
        raise ProtocolError(f"{verb!r} takes {counts} values after the verb, {len(arguments)} came")


def _reward(verb: str, value: Any) -> float:
    reward = _number(value, f"the reward of {verb!r}")
    if not is_reward_allowed(reward):
        raise ProtocolError(f"the reward of {verb!r} is {reward:g}, {REWARD_NOT_ALLOWED}")
    return reward


def _number(value: Any, what: str) -> float:
    # bool is a kind of int in Python, but true is no number in JSON.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProtocolError(f"{what} is a number, this is {reprlib.repr(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise ProtocolError(f"{what} is too large for a number") from error
    if not math.isfinite(number):
        raise ProtocolError(f"{what} is {number}; it must be finite")
    return number


REQUEST_PARSERS: dict[str, Callable[[list[Any], int], Steps | Metric]] = {
    "act": _parse_act,
    "reward_and_act": _parse_reward_and_act,
    "reward_and_reset": _parse_reward_and_reset,
    "scalar_metric": _parse_scalar_metric,
    "agent": _refuse_agent,
}
