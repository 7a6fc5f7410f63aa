"""Steps and their answers as both ends of a connection write and read them, one after another.

Nearly all messages report a step of every environment in which no episode starts or ends. Two such
messages differ only in rewards and observations, and their answers in the actions. All the rest is
sent, or compared, as one piece of bytes (``benchmarks/codec.py``). The functions in
``messages`` give the same results.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.observations import Observations
from relaax.protocol.binary.arrays import encode_block
from relaax.protocol.binary.messages import (
    Answers,
    Metric,
    answer_flags,
    decode_answers,
    decode_metric,
    decode_steps,
    encode_answers,
    encode_metric,
    encode_steps,
)
from relaax.protocol.connection import Payload
from relaax.steps import REWARD_NOT_ALLOWED, Flags, IntArray, Steps, are_rewards_allowed

Array = npt.NDArray[Any]

_HEAD_BYTES = 4

_DOUBLE = np.dtype("<f8")

#: A view of an array costs as much as a copy of so many bytes.
_LARGE_BYTES = 16 * 1024

#: The end of a message of steps in which no episode ends: there are no final observations.
_NO_FINALS = b"\0"


class _Part(NamedTuple):
    """One array: its description, where that and its numbers begin, and their type and shape."""

    name: str
    heading: bytes
    heading_at: int
    array_at: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int


class _Pattern:
    """The common part of plain messages about the same environments and one kind of arrays.

    head: the message up to the rewards. between: how many bytes the rewards have.
    """

    def __init__(self, head: bytes, between: int, observations: Observations) -> None:
        self.head = head
        self._is_named = isinstance(observations, dict)
        arrays = observations if isinstance(observations, dict) else {"": observations}
        self._parts: list[_Part] = []
        at = len(head) + between
        headings = [bytes(heading) for heading in encode_block(observations)[::2]]
        for (name, array), heading in zip(arrays.items(), headings, strict=True):
            array_at = at + len(heading)
            self._parts.append(
                _Part(name, heading, at, array_at, array.dtype, array.shape, array.size)
            )
            at = array_at + array.nbytes
        self.array_end = at
        self._names = frozenset(arrays)
        # Nearly all messages have one array, which has no name.
        self._one = one = self._parts[0]
        self._heading, self._heading_at, self._array_at = one.heading, one.heading_at, one.array_at
        self._dtype, self._shape = one.dtype, one.shape

    def fits(self, observations: Any) -> bool:
        """Return whether ``observations`` are of the same kinds and names, in any order."""
        if not self._is_named:
            return (
                type(observations) is np.ndarray
                and observations.shape == self._shape
                and observations.dtype == self._dtype
            )
        return (
            isinstance(observations, dict)
            and observations.keys() == self._names
            and all(
                observations[part.name].shape == part.shape
                and observations[part.name].dtype == part.dtype
                for part in self._parts
            )
        )

    def message(self, rewards: bytes, observations: Any, end: bytes) -> bytes:
        """Return a message with ``rewards`` and observations that fit."""
        if not self._is_named:
            return b"".join((self.head, rewards, self._heading, _bytes_of(observations), end))
        pieces = [self.head, rewards]
        for part in self._parts:
            pieces += (part.heading, observations[part.name].tobytes())
        return b"".join((*pieces, end))

    def matches(self, payload: Payload) -> bool:
        """Return whether a payload begins, and goes on, like the others."""
        if payload[: len(self.head)] != self.head:
            return False
        if not self._is_named:
            return payload[self._heading_at : self._array_at] == self._heading
        return all(payload[part.heading_at : part.array_at] == part.heading for part in self._parts)

    def arrays_in(self, payload: Payload) -> Any:
        """Return the array, or the arrays by name, in a payload that matches, as views."""
        if not self._is_named:
            return _array_in(payload, self._one)
        return {part.name: _array_in(payload, part) for part in self._parts}


def _array_in(payload: Payload, part: _Part) -> Array:
    return np.frombuffer(payload, part.dtype, part.size, part.array_at).reshape(part.shape)


class ClientCodec:
    """A client's end: encodes messages of steps and decodes their answers, in turns.

    The codec keeps no array that it is given, and the arrays in its answers are nowhere else.
    """

    def __init__(self, environments: int) -> None:
        everyone = np.arange(environments)
        self._all = Steps(
            everyone, np.zeros(environments, np.uint8), np.zeros(environments), (), ()
        )
        self._all_asked = _Question(everyone, answer_flags(self._all.flags))
        #: How long a message is up to its rewards, or its answer up to its actions.
        self._head_bytes = _head_bytes(self._all)
        self._head = encode_steps(self._all)[: self._head_bytes]
        #: Made of the first observations, and of the first actions, of their kind.
        self._pattern: _Pattern | None = None
        self._answer_pattern: _Pattern | None = None
        #: The message that has been encoded last.
        self._asked: _Question | None = None

    def encode_all(self, rewards: Array, observations: Observations) -> bytes:
        """Return the message in which every environment takes a step, and no episode ends.

        rewards: float64 [N]; observations: [N, ...], or arrays of that shape by name; both checked.
        """
        self._asked = self._all_asked
        rewards = np.asarray(rewards, _DOUBLE)
        pattern = self._pattern
        if pattern is None or not pattern.fits(observations):
            if not _is_little_endian(observations):
                return encode_steps(replace(self._all, rewards=rewards, observations=observations))
            pattern = self._pattern = _Pattern(self._head, rewards.nbytes, observations)
        return pattern.message(rewards.tobytes(), observations, _NO_FINALS)

    def encode(self, steps: Steps) -> bytes:
        """Return the message of ``steps`` of any kind, which have been checked."""
        self._asked = _Question(np.array(steps.environments), answer_flags(steps.flags))
        return encode_steps(steps)

    def encode_metric(self, metric: Metric) -> bytes:
        """Return the message of a metric, which is not answered."""
        return encode_metric(metric)

    def decode(self, payload: Payload) -> Answers:
        """Return the answers to the message that was encoded last.

        ProtocolError for answers about other environments, or of other kinds, than were asked for;
        Error when the server closes instead.
        """
        if self._asked is None:
            raise ValueError("no message has been encoded that could be answered")
        pattern = self._answer_pattern
        if (
            pattern is not None
            and self._asked is self._all_asked
            and len(payload) == pattern.array_end
            and pattern.matches(payload)
        ):
            return self._all_answered(pattern.arrays_in(payload).copy())
        answers = decode_answers(payload)
        _require_about(answers, self._asked)
        if self._asked is self._all_asked:
            head = bytes(payload[: self._head_bytes])
            self._answer_pattern = _Pattern(head, 0, answers.actions)
        return answers

    def _all_answered(self, actions: Array) -> Answers:
        asked = self._all_asked
        return Answers(asked.environments.copy(), actions, np.zeros(0), asked.kinds.copy())


class ServerCodec:
    """A server's end: decodes a client's messages and encodes the answers, in turns."""

    def __init__(self, environments: int) -> None:
        self._count = environments
        self._pattern: _Pattern | None = None
        #: The message that the pattern was made of; its arrays cannot be written to.
        self._like: Steps | None = None
        self._answer_pattern: _Pattern | None = None
        #: The message that has been decoded last, and whether it is like the pattern.
        self._last: Steps | None = None
        self._is_alike = False

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return a client's message; ProtocolError for nonsense."""
        pattern, like = self._pattern, self._like
        if pattern is not None and like is not None and _is_alike(payload, pattern):
            self._is_alike = True
            self._last = _decode_alike(payload, pattern, like)
            return self._last
        self._is_alike = False
        metric = decode_metric(payload)
        if metric is not None:
            return metric
        self._last = decode_steps(payload, self._count)
        self._learn_pattern(payload, self._last)
        return self._last

    def encode(self, actions: Sequence[Any] | Array, scores: Array) -> bytes:
        """Return the answer to the last decoded steps.

        actions: [A, ...], of the environments that want one; scores: float64 [E], of ended
        episodes. TypeError or ValueError for actions that are not numeric.
        """
        actions = np.asarray(actions)
        pattern = self._answer_pattern
        if self._is_alike and pattern is not None and pattern.fits(actions):
            return pattern.message(b"", actions, b"")
        last = self._last
        if last is None:
            raise RuntimeError("no steps have been decoded that could be answered")
        payload = encode_answers(last.environments, last.flags, actions, scores)
        if self._is_alike and _is_little_endian(actions):
            self._answer_pattern = _Pattern(payload[: _head_bytes(last)], 0, actions)
        return payload

    def _learn_pattern(self, payload: Payload, steps: Steps) -> None:
        """Expect messages like this one, if no episode starts or ends in it."""
        if steps.flags.any() or not isinstance(steps.observations, np.ndarray | dict):
            return
        head = bytes(payload[: _head_bytes(steps)])
        self._pattern = _Pattern(head, 8 * len(steps.flags), steps.observations)
        self._like = replace(steps, rewards=np.zeros(0), observations=())
        for array in (steps.environments, steps.flags):
            array.setflags(write=False)
        self._answer_pattern = None
        self._is_alike = True


@dataclass(frozen=True)
class _Question:
    """The expected answer to a message of steps; nothing else can change these arrays."""

    #: int64 [M].
    environments: IntArray
    #: uint8 [M], see ``answer_flags``.
    kinds: Flags


def _is_little_endian(array: Any) -> bool:
    """Return whether ``array`` is one, or a dict of some, whose bytes can be sent as they are."""
    if isinstance(array, dict):
        return all(_is_little_endian(part) for part in array.values())
    return isinstance(array, np.ndarray) and array.dtype.newbyteorder("<") == array.dtype


def _bytes_of(array: Any) -> bytes | memoryview:
    """Return an array's bytes: a copy of a small one, which is faster, or a view."""
    if array.nbytes < _LARGE_BYTES or not array.flags.c_contiguous:
        copied: bytes = array.tobytes()
        return copied
    viewed: memoryview = array.reshape(-1).view(np.uint8).data
    return viewed


def _require_about(answers: Answers, asked: _Question) -> None:
    """Raise ProtocolError for answers about other environments, or of another kind."""
    if not np.array_equal(answers.environments, asked.environments):
        raise ProtocolError(
            f"it was asked about the environments {_short(asked.environments)}, "
            f"it answered about {_short(answers.environments)}"
        )
    if not np.array_equal(answers.flags, asked.kinds):
        raise ProtocolError(
            f"the answers to {_short(asked.environments)} are of the kinds "
            f"{_short(answers.flags)}, not {_short(asked.kinds)}"
        )


def _short(numbers: Array) -> str:
    return np.array2string(numbers, threshold=16, separator=", ")


def _is_alike(payload: Payload, pattern: _Pattern) -> bool:
    """Return whether a message is like the pattern; then there are no final observations."""
    return len(payload) == pattern.array_end + 1 and payload[-1] == 0 and pattern.matches(payload)


def _decode_alike(payload: Payload, pattern: _Pattern, like: Steps) -> Steps:
    rewards = np.frombuffer(payload, "<f8", len(like.flags), len(pattern.head))
    if not are_rewards_allowed(rewards):
        raise ProtocolError(f"a reward is {REWARD_NOT_ALLOWED}")
    return Steps(like.environments, like.flags, rewards, pattern.arrays_in(payload), ())


def _head_bytes(steps: Steps) -> int:
    """Return how long a message is up to its rewards, or its answer up to its actions."""
    return _HEAD_BYTES + 3 * len(steps.flags)
