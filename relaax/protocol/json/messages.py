"""The messages of RLX version 1: JSON arrays, verb first.

The state of a request is encoded twice: it is a JSON *string* that holds the JSON of the state.
The action of a reply is not.
"""

import math
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.messages import Metric
from relaax.protocol.connection import Payload
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json import codec as json_codec
from relaax.protocol.json.codec import DEFAULT_MAX_ARRAY_BYTES
from relaax.protocol.nesting import is_text
from relaax.steps import EXECUTED, REWARD_NOT_ALLOWED, START, TERMINATED, Steps, is_reward_allowed

DEFAULT_MAX_STATE_BYTES = DEFAULT_MAX_ARRAY_BYTES

MAX_METRIC_NAME_BYTES = 255

#: The only environment of a connection.
_ONLY = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Act:
    """An episode starts; a running one was cut off. Answered by an action."""

    state: Any


@dataclass(frozen=True)
class RewardAndAct:
    """The reward of the previous action, and the next state. Answered by an action.

    ``action`` is the executed one, if it was reported.
    """

    reward: float
    state: Any
    action: Any = None


@dataclass(frozen=True)
class RewardAndReset:
    """The last reward of an episode that is over. Answered by the episode's score.

    ``action`` is the executed one, if it was reported.
    """

    reward: float
    action: Any = None


Request: TypeAlias = Act | RewardAndAct | RewardAndReset | Metric


def encode_request(message: Request) -> bytes:
    """Return the payload of the frame that carries ``message``.

    Raises ``ValueError`` or ``TypeError`` for values that JSON cannot hold.
    """
    match message:
        case Act(state):
            return _encode(["act", _encode_state(state)])
        case RewardAndAct(reward, state, action):
            return _encode(["reward_and_act", reward, _encode_state(state), *_if_any(action)])
        case RewardAndReset(reward, action):
            return _encode(["reward_and_reset", reward, *_if_any(action)])
        case Metric(name, y, None):
            return _encode(["scalar_metric", name, y])
        case Metric(name, y, x):
            return _encode(["scalar_metric", name, y, x])


def decode_request(payload: Payload, max_state_bytes: int = DEFAULT_MAX_STATE_BYTES) -> Request:
    """Return the request in ``payload``.

    The arrays of its state may unpack to ``max_state_bytes``, and so may that of its action. Raises
    ``ProtocolError`` for anything but a request.
    """
    verb, arguments = _decode_verb(payload, max_state_bytes)
    parse = REQUEST_PARSERS.get(verb)
    if parse is None:
        raise ProtocolError(
            f"the verb {reprlib.repr(verb)} is unknown; the verbs are {', '.join(REQUEST_PARSERS)}"
        )
    return parse(arguments, max_state_bytes)


def encode_action(action: Any) -> bytes:
    """Return the payload that answers ``Act`` and ``RewardAndAct``.

    ``action`` is an integer or an array. Raises as ``encode_request`` does.
    """
    return _encode(["act", action])


def encode_score(score: float) -> bytes:
    """Return the payload that answers ``RewardAndReset``: the sum of the episode's rewards."""
    return _encode(["reset", score])


def decode_action(payload: Payload) -> Any:
    """Return the action in a reply: an int, or an array. Raises ``ProtocolError``."""
    return _decode_reply(payload, "act")


def decode_score(payload: Payload) -> float:
    """Return the score in a reply. Raises ``ProtocolError``."""
    return _number(_decode_reply(payload, "reset"), "the score of 'reset'")


def _encode(message: list[Any]) -> bytes:
    return json_codec.encode(message, what=message[0]).encode("ascii")


def _encode_state(state: Any) -> str:
    return json_codec.encode(state, what="the state")


def _decode_verb(payload: Payload, max_array_bytes: int) -> tuple[str, list[Any]]:
    message = json_codec.decode_utf8(payload, max_array_bytes)
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ProtocolError(
            f"a message is a JSON array that starts with a verb, this is {reprlib.repr(message)}"
        )
    return message[0], message[1:]


def _decode_reply(payload: Payload, expected_verb: str) -> Any:
    verb, arguments = _decode_verb(payload, DEFAULT_MAX_STATE_BYTES)
    if verb != expected_verb:
        raise ProtocolError(f"the reply {expected_verb!r} was expected, {verb[:32]!r} came")
    _check_count(verb, arguments, 1)
    return arguments[0]


def _parse_act(arguments: list[Any], max_state_bytes: int) -> Act:
    _check_count("act", arguments, 1)
    return Act(_decode_state("act", arguments[0], max_state_bytes))


def _parse_reward_and_act(arguments: list[Any], max_state_bytes: int) -> RewardAndAct:
    _check_count("reward_and_act", arguments, 2, 3)
    return RewardAndAct(
        _reward("reward_and_act", arguments[0]),
        _decode_state("reward_and_act", arguments[1], max_state_bytes),
        _executed("reward_and_act", arguments[2:]),
    )


def _parse_reward_and_reset(arguments: list[Any], max_state_bytes: int) -> RewardAndReset:
    _check_count("reward_and_reset", arguments, 1, 2)
    reward = _reward("reward_and_reset", arguments[0])
    return RewardAndReset(reward, _executed("reward_and_reset", arguments[1:]))


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


def _if_any(action: Any) -> list[Any]:
    """Return the last part of a message: the executed action, if there is one."""
    return [] if action is None else [action]


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


REQUEST_PARSERS: dict[str, Callable[[list[Any], int], Request]] = {
    "act": _parse_act,
    "reward_and_act": _parse_reward_and_act,
    "reward_and_reset": _parse_reward_and_reset,
    "scalar_metric": _parse_scalar_metric,
}


class ServerCodec:
    """Decodes a version 1 client's messages about its one environment, and encodes answers."""

    def __init__(self, max_state_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_state_bytes = max_state_bytes

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return a client's message; ProtocolError for nonsense."""
        match decode_request(payload, self._max_state_bytes):
            case Act(state):
                return _steps(START, 0.0, [state])
            case RewardAndAct(reward, state, action):
                return _steps(0, reward, [state], action)
            case RewardAndReset(reward, action):
                return _steps(TERMINATED, reward, [], action)
            case Metric() as metric:
                return metric

    def encode(
        self, actions: Sequence[Any] | npt.NDArray[Any], scores: npt.NDArray[np.float64]
    ) -> bytes:
        """Return the action, or the score of an episode that is over.

        TypeError or ValueError for an action that JSON cannot hold.
        """
        if len(scores):
            return encode_score(float(scores[0]))
        return encode_action(actions[0])


def _steps(flags: int, reward: float, states: list[Any], executed: Any = None) -> Steps:
    actions = () if executed is None else (executed,)
    flags |= EXECUTED if actions else 0
    return Steps(_ONLY, np.array([flags], np.uint8), np.array([reward]), states, (), actions)
