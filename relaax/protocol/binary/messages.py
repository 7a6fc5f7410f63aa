"""The messages of RLX version 2. The first byte of a payload is its kind."""

import hashlib
import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.arrays import Block, block_length, decode_block, encode_block
from relaax.protocol.connection import Payload
from relaax.protocol.nesting import is_text, require_within_limits
from relaax.spaces import Space
from relaax.steps import (
    ENDED,
    EXECUTED,
    FINAL,
    REWARD_NOT_ALLOWED,
    START,
    TERMINATED,
    TRUNCATED,
    AgentName,
    Evaluation,
    Steps,
    are_rewards_allowed,
    number_of,
    wants_action,
)

VERSION = 2

#: A version-1 server finds no JSON behind the first byte and closes.
_HELLO = b"\x01RLX"
_WELCOME = 2
_STEPS = 3
_ACTIONS = 4
_METRIC = 5
_ERROR = 6

MAX_NAME_BYTES = 255
MAX_TEXT_CHARACTERS = 255
MAX_ENVIRONMENTS = 65535

#: The most agents of one environment, and the longest name of one, in UTF-8.
MAX_AGENTS = 255
MAX_AGENT_BYTES = 64

_SHORT_TEXT = f"is a string of at most {MAX_TEXT_CHARACTERS} characters of Unicode"

_HAS_ACTION = 1
_HAS_SCORE = 2

_HEAD = struct.Struct("<BBH")
_METRIC_HEAD = struct.Struct("<BBHdd")
_VERSION_FIELD = struct.Struct("<HH")

_POSSIBLE_FLAGS = np.zeros(256, np.bool_)
for _flags in (0, START, TERMINATED, TERMINATED | FINAL, TRUNCATED | FINAL):
    _POSSIBLE_FLAGS[[_flags, _flags | START]] = True
    if _flags != START:  # an action was taken before
        _POSSIBLE_FLAGS[_flags | EXECUTED] = True
    if _flags & ENDED:
        _POSSIBLE_FLAGS[_flags | START | EXECUTED] = True


class ErrorCode(IntEnum):
    """Why a server closes a connection."""

    #: A message broke the protocol.
    PROTOCOL = 1
    #: The environment's spaces or its states do not fit the server's configuration.
    MISMATCH = 2
    #: This server has done its part; another one, or this one later, will go on.
    GO_ELSEWHERE = 3
    #: The server failed; the client did nothing wrong.
    SERVER = 4
    #: The server does not speak the version that was asked for.
    VERSION = 5
    #: The training has come to its end; there is no need to connect again.
    TRAINING_IS_OVER = 6
    #: The algorithm failed, or its actions cannot be used; its own code must change, and to connect
    #: again does not help.
    ALGORITHM = 7
    #: The client has not proved that it may connect: by a token, or by a certificate.
    ACCESS = 8


class Error(Exception):
    """The server closes the connection with a reason."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Hello:
    """The first message of a client."""

    #: Random for each incarnation of a client.
    run_id: str
    #: The environment's name for people.
    environment: str
    #: How many environments this connection carries.
    environments: int = 1
    #: None where it is not told.
    observation_space: Space | None = None
    action_space: Space | None = None
    #: The kind of evaluation; None for training.
    evaluate: Evaluation | None = None
    #: The training that it belongs to; None where it does not know.
    run: str | None = None
    #: The names of the agents of each environment; then ``environments`` counts agents, those of
    #: one environment one behind the other. None: each environment has one, without a name.
    agents: tuple[str, ...] | None = None

    def agent_names(self) -> list[AgentName]:
        """Return the names of the agents [environments], of which each environment is a group.

        A group has a name that no other client's groups have. Empty where agents have no names.
        """
        if self.agents is None:
            return []
        client = hashlib.blake2b(self.run_id.encode(), digest_size=8).hexdigest()
        return [
            AgentName(name, f"{client}/{group}", index)
            for group in range(self.environments // len(self.agents))
            for index, name in enumerate(self.agents)
        ]


@dataclass(frozen=True)
class Welcome:
    """The server's answer to a hello that it accepts."""

    #: The observation space of the server's configuration; None for any.
    observation_space: Space | None = None
    action_space: Space | None = None
    #: As in the hello; None of a server that does not know of evaluations, and learns from all.
    evaluate: Evaluation | None = None
    #: Whether reports may bring the actions that were executed; an older server refuses them.
    executed_actions: bool = True
    #: Whether the agents of the hello are told apart; an older server ignores their names.
    agents: bool = False


@dataclass(frozen=True)
class Answers:
    """The server's answer to a message of steps, in the order of its environments."""

    #: int64 [M]
    environments: npt.NDArray[np.int64]
    #: [A, ...]: for environments that want one.
    actions: npt.NDArray[Any]
    #: float64 [E]: sums of the rewards of the episodes that ended.
    scores: npt.NDArray[np.float64]
    #: uint8 [M]: the kind of each answer, see ``answer_flags``.
    flags: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Metric:
    """A number to store under a name; ``x`` is the global step unless given. Not answered."""

    name: str
    y: float
    x: float | None = None


def is_hello(payload: Payload) -> bool:
    """Return whether a connection that starts with ``payload`` speaks version 2."""
    return payload[: len(_HELLO)] == _HELLO


def encode_hello(hello: Hello) -> bytes:
    """Return the payload of a hello; ValueError for texts that are too long, and for agents."""
    texts = {"run_id": hello.run_id, "environment": hello.environment, "run": hello.run or ""}
    for what, text in texts.items():
        if not _is_short_text(text):
            raise ValueError(f"{what} {_SHORT_TEXT}, this has {len(text)}: {text!r:.60}")
    if mistake := _mistake_in_agents(hello.agents or (), hello.environments):
        raise ValueError(mistake)
    body = {
        "run_id": hello.run_id,
        "environment": hello.environment,
        "environments": hello.environments,
        "observation_space": hello.observation_space,
        "action_space": hello.action_space,
        **_evaluation_member(hello.evaluate),
        **({} if hello.run is None else {"run": hello.run}),
        **({} if hello.agents is None else {"agents": hello.agents}),
    }
    return _HELLO + _VERSION_FIELD.pack(VERSION, 0) + json.dumps(body).encode()


def decode_hello(payload: Payload) -> Hello:
    """Return the hello in ``payload``; Error with a code if it cannot be welcomed."""
    begin = len(_HELLO) + _VERSION_FIELD.size
    if not is_hello(payload) or len(payload) < begin:
        raise ProtocolError("this is no hello")
    version, _ = _VERSION_FIELD.unpack_from(payload, len(_HELLO))
    if version != VERSION:
        text = f"version {version} was asked for; versions 1 and {VERSION} are spoken here"
        raise Error(ErrorCode.VERSION, text)
    body = _decode_json(payload[begin:], "a hello")
    environments = body.get("environments", 1)
    if type(environments) is not int or not 1 <= environments <= MAX_ENVIRONMENTS:
        raise ProtocolError(f"environments is 1 to {MAX_ENVIRONMENTS}, not {environments!r:.40}")
    return Hello(
        run_id=_text(body, "run_id"),
        environment=_text(body, "environment"),
        environments=environments,
        observation_space=_space(body, "observation_space"),
        action_space=_space(body, "action_space"),
        evaluate=_evaluation(body),
        run=_text(body, "run") or None,
        agents=_agents(body, environments),
    )


def encode_welcome(welcome: Welcome) -> bytes:
    """Return the payload of a welcome."""
    body = {
        "version": VERSION,
        "observation_space": welcome.observation_space,
        "action_space": welcome.action_space,
        "executed_actions": welcome.executed_actions,
        **_evaluation_member(welcome.evaluate),
        **({"agents": True} if welcome.agents else {}),
    }
    return bytes([_WELCOME]) + json.dumps(body).encode()


def decode_welcome(payload: Payload) -> Welcome:
    """Return the welcome in ``payload``; raises Error when the server refuses instead."""
    _expect(payload, _WELCOME, "a welcome")
    body = _decode_json(payload[1:], "a welcome")
    return Welcome(
        _space(body, "observation_space"),
        _space(body, "action_space"),
        _evaluation(body),
        executed_actions=body.get("executed_actions") is True,
        agents=body.get("agents") is True,
    )


def encode_steps(steps: Steps) -> bytes:
    """Return the payload of a message of steps, whose observations and finals are blocks.

    Executed actions are a third block, if there are any.
    """
    executed = np.asarray(steps.executed)
    return b"".join(
        (
            _HEAD.pack(_STEPS, 0, len(steps.environments)),
            np.asarray(steps.environments, "<u2").tobytes(),
            np.asarray(steps.flags, "u1").tobytes(),
            np.asarray(steps.rewards, "<f8").tobytes(),
            *encode_block(_as_block(steps.observations)),
            *encode_block(_as_block(steps.finals)),
            *(encode_block(executed) if len(executed) else ()),
        )
    )


def decode_steps(payload: Payload, environments: int) -> Steps:
    """Return the steps in ``payload``, of a connection with so many environments."""
    try:
        return _decode_steps(payload, environments)
    except (IndexError, struct.error) as error:
        raise ProtocolError("a message of steps breaks off") from error


def answer_flags(flags: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the kinds of answers to steps with ``flags`` [M]: an action, a score or both."""
    kinds = wants_action(flags) * _HAS_ACTION + ((flags & ENDED) != 0) * _HAS_SCORE
    return np.asarray(kinds, np.uint8)


def encode_answers(
    environments: npt.NDArray[Any],
    flags: npt.NDArray[np.uint8],
    actions: npt.NDArray[Any],
    scores: npt.NDArray[np.float64],
) -> bytes:
    """Return the payload that answers steps with these ``flags`` [M].

    actions: [A, ...], of environments that want one; scores: float64 [E], of ended episodes.
    """
    return b"".join(
        (
            _HEAD.pack(_ACTIONS, 0, len(environments)),
            np.asarray(environments, "<u2").tobytes(),
            answer_flags(flags).tobytes(),
            np.asarray(scores, "<f8").tobytes(),
            *encode_block(actions if len(actions) else None),
        )
    )


def decode_answers(payload: Payload) -> Answers:
    """Return the answers in ``payload``; raises Error when the server closes instead.

    The actions are a copy, which may be written to.
    """
    _expect(payload, _ACTIONS, "actions")
    try:
        _, _, count = _HEAD.unpack_from(payload)
        environments, flags, offset = _numbers_and_flags(payload, count)
        ended = int(np.count_nonzero(flags & _HAS_SCORE))
        scores, offset = _column(payload, "<f8", ended, offset)
        block, offset = decode_block(payload, offset)
    except (IndexError, struct.error) as error:
        raise ProtocolError("a message of actions breaks off") from error
    _require_end(payload, offset)
    if isinstance(block, dict):
        raise ProtocolError("actions are one array")
    actions = np.zeros(0, np.int64) if block is None else np.array(block)
    if block_length(block) != np.count_nonzero(flags & _HAS_ACTION):
        raise ProtocolError("there are not as many actions as environments that have one")
    return Answers(environments, actions, scores, flags)


def encode_metric(metric: Metric) -> bytes:
    """Return the payload of a metric; ValueError for a name that is too long."""
    name = metric.name.encode()
    if not 0 < len(name) <= MAX_NAME_BYTES:
        raise ValueError(f"the name of a metric has 1 to {MAX_NAME_BYTES} bytes, not {len(name)}")
    for value in (metric.y, metric.x or 0.0):
        if not math.isfinite(value):
            raise ValueError(f"the metric {metric.name} is {value}")
    x = 0.0 if metric.x is None else metric.x
    return _METRIC_HEAD.pack(_METRIC, metric.x is not None, len(name), metric.y, x) + name


def decode_metric(payload: Payload) -> Metric | None:
    """Return the metric in ``payload``, or None when it is another message."""
    if payload[0] != _METRIC:
        return None
    if len(payload) < _METRIC_HEAD.size:
        raise ProtocolError("a metric breaks off")
    _, has_x, length, y, x = _METRIC_HEAD.unpack_from(payload)
    name = bytes(payload[_METRIC_HEAD.size :])
    if len(name) != length or not 0 < length <= MAX_NAME_BYTES:
        raise ProtocolError(f"the name of a metric has 1 to {MAX_NAME_BYTES} bytes")
    if not (math.isfinite(y) and math.isfinite(x)):
        raise ProtocolError(f"a metric must be finite, not {y} at {x}")
    try:
        return Metric(name.decode(), y, x if has_x else None)
    except UnicodeDecodeError as error:
        raise ProtocolError(f"the name of a metric is not UTF-8: {error}") from error


def encode_error(code: ErrorCode, text: str) -> bytes:
    """Return the payload of an error; the server closes after it."""
    return _HEAD.pack(_ERROR, 0, code) + text.encode(errors="replace")


def raise_if_error(payload: Payload) -> None:
    """Raise the Error that ``payload`` is; return if it is another message."""
    if payload[0] != _ERROR:
        return
    if len(payload) < _HEAD.size:
        raise ProtocolError("an error breaks off")
    raise Error(_HEAD.unpack_from(payload)[2], str(payload[_HEAD.size :], errors="replace"))


def _decode_steps(payload: Payload, environments: int) -> Steps:
    kind, _, count = _HEAD.unpack_from(payload)
    if kind != _STEPS:
        raise ProtocolError(f"a message of kind {kind} came where steps ({_STEPS}) are expected")
    numbers, flags, offset = _numbers_and_flags(payload, count)
    if not _POSSIBLE_FLAGS[flags].all():
        raise ProtocolError(f"the flags {sorted(set(flags.tolist()))} do not go together")
    rewards, offset = _column(payload, "<f8", count, offset)
    observations, offset = decode_block(payload, offset)
    finals, offset = decode_block(payload, offset)
    executed: Block = None
    if (flags & EXECUTED).any():
        executed, offset = decode_block(payload, offset)
    _require_end(payload, offset)
    _check_environments(numbers, environments)
    if not are_rewards_allowed(rewards):
        raise ProtocolError(f"a reward is {REWARD_NOT_ALLOWED}")
    acting = count
    if flags.any():
        acting = int(np.count_nonzero(wants_action(flags)))
    _check_length("observations", observations, acting)
    _check_length("final observations", finals, int(np.count_nonzero(flags & FINAL)))
    _check_length("executed actions", executed, int(np.count_nonzero(flags & EXECUTED)))
    if isinstance(executed, dict):
        raise ProtocolError("executed actions are one array without a name")
    return Steps(numbers, flags, rewards, _states(observations), _states(finals), _states(executed))


def _check_environments(numbers: npt.NDArray[np.int64], environments: int) -> None:
    listed = numbers.tolist()
    if not listed:
        raise ProtocolError("a message of steps is of one environment at least")
    if max(listed) >= environments:
        raise ProtocolError(
            f"environment {max(listed)} reports, the hello announced {environments}"
        )
    if len(set(listed)) != len(listed):
        raise ProtocolError("an environment is twice in one message")


def _check_length(what: str, block: Block, expected: int) -> None:
    if block_length(block) != expected:
        raise ProtocolError(f"{expected} {what} are expected, {block_length(block)} came")


def _states(block: Block) -> Any:
    return () if block is None else block


def _as_block(states: Any) -> Block:
    return states if number_of(states) else None


def _numbers_and_flags(
    payload: Payload, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], int]:
    """Return the columns that both directions begin with, and where they end."""
    numbers, offset = _column(payload, "<u2", count, _HEAD.size)
    flags, offset = _column(payload, "u1", count, offset)
    return numbers.astype(np.int64), flags, offset


def _column(payload: Payload, dtype: str, count: int, offset: int) -> tuple[Any, int]:
    end = offset + count * np.dtype(dtype).itemsize
    if end > len(payload):
        raise IndexError
    if count == 0:
        return np.zeros(0, dtype), end
    return np.frombuffer(payload, dtype, count, offset), end


def _require_end(payload: Payload, offset: int) -> None:
    if offset != len(payload):
        raise ProtocolError(f"{len(payload) - offset} bytes follow after the end of a message")


def _expect(payload: Payload, kind: int, what: str) -> None:
    raise_if_error(payload)
    if payload[0] != kind:
        raise ProtocolError(f"{what} was expected, a message of kind {payload[0]} came")


def _decode_json(data: Payload, what: str) -> dict[str, Any]:
    try:
        text = str(data, encoding="utf-8")
        require_within_limits(text)
        body = json.loads(text)
    except ValueError as error:
        raise ProtocolError(f"{what} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ProtocolError(f"{what} is a JSON object")
    return body


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key, "")
    if not isinstance(value, str) or not _is_short_text(value):
        raise ProtocolError(f"{key} {_SHORT_TEXT}")
    return value


def _is_short_text(text: str) -> bool:
    return len(text) <= MAX_TEXT_CHARACTERS and is_text(text)


def _evaluation_member(evaluation: Evaluation | None) -> dict[str, str]:
    """Return the member ``evaluate``; none for training, as in older versions."""
    return {} if evaluation is None else {"evaluate": evaluation.value}


def _evaluation(body: dict[str, Any]) -> Evaluation | None:
    value = body.get("evaluate")
    if value is None:
        return None
    for evaluation in Evaluation:
        if value == evaluation.value:
            return evaluation
    known = " or ".join(repr(evaluation.value) for evaluation in Evaluation)
    raise ProtocolError(f"evaluate is {known}, not {value!r:.40}")


def _agents(body: dict[str, Any], environments: int) -> tuple[str, ...] | None:
    value = body.get("agents")
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise ProtocolError("agents is a list of names, or null")
    if mistake := _mistake_in_agents(value, environments):
        raise ProtocolError(mistake)
    return tuple(value)


def _mistake_in_agents(names: Sequence[Any], environments: int) -> str | None:
    """Return in words why environments cannot have agents of these names; None if they can."""
    if len(names) > MAX_AGENTS:
        return f"an environment has {MAX_AGENTS} agents at most, not {len(names)}"
    for name in names:
        if not isinstance(name, str) or not is_text(name) or not _fits_a_label(name):
            return f"an agent's name has 1 to {MAX_AGENT_BYTES} bytes of UTF-8, not {name!r:.80}"
    if len(set(names)) < len(names):
        return "two agents of an environment have the same name"
    if names and environments % len(names):
        return f"environments with {len(names)} agents each have no {environments} agents in all"
    return None


def _fits_a_label(name: str) -> bool:
    return 0 < len(name.encode()) <= MAX_AGENT_BYTES


def _space(body: dict[str, Any], key: str) -> Space | None:
    value = body.get(key)
    if value is not None and not isinstance(value, dict):
        raise ProtocolError(f"{key} is an object or null")
    return value
