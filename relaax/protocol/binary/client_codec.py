"""A client's end of the binary messages about steps, of one connection."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.messages import (
    Answers,
    answer_flags,
    decode_answers,
    encode_steps,
)
from relaax.protocol.binary.pattern import Pattern, is_little_endian
from relaax.protocol.connection import Payload
from relaax.steps import Flags, IntArray, Steps

Array = npt.NDArray[Any]

_HEAD_BYTES = 4
_DOUBLE = np.dtype("<f8")
#: A view of an array costs as much as a copy of so many bytes.
_LARGE_BYTES = 16 * 1024
#: The end of a message of steps in which no episode ends: there are no final observations.
_NO_FINALS = b"\0"


@dataclass(frozen=True)
class _Question:
    """What a message of steps must be answered with; nothing else can change these arrays."""

    #: int64 [M].
    environments: IntArray
    #: uint8 [M], as ``answer_flags`` says.
    kinds: Flags


class ClientCodec:
    """Encodes messages of steps and decodes their answers, in turns.

    Nearly all messages report a step of every environment in which no episode starts or ends. Such
    a message differs from the one before in its rewards and its observations, and its answer in the
    actions; what stays the same is sent, or compared, as one piece of bytes
    (``benchmarks/codec.py``). The results are those of ``encode_steps`` and ``decode_answers``.

    The codec keeps no array that it is given, and the arrays in its answers are nowhere else.
    """

    def __init__(self, environments: int) -> None:
        everyone = np.arange(environments)
        self._all = Steps(
            everyone, np.zeros(environments, np.uint8), np.zeros(environments), (), ()
        )
        self._all_asked = _Question(everyone, answer_flags(self._all.flags))
        #: How long a message is up to its rewards, or its answer up to its actions.
        self._head_bytes = _HEAD_BYTES + 3 * environments
        self._head = encode_steps(self._all)[: self._head_bytes]
        #: Made of the first observations, and of the first actions, of their kind.
        self._pattern: Pattern | None = None
        self._answer_pattern: Pattern | None = None
        #: The message that has been encoded last.
        self._asked: _Question | None = None

    def encode_all(self, rewards: Array, observations: Array) -> bytes:
        """Return the message in which every environment takes a step, and no episode ends.

        rewards: float64 [N]; observations: [N, ...], both already checked.
        """
        self._asked = self._all_asked
        rewards = np.asarray(rewards, _DOUBLE)
        pattern = self._pattern
        if pattern is None or not pattern.fits(observations):
            if not is_little_endian(observations):
                return encode_steps(replace(self._all, rewards=rewards, observations=observations))
            pattern = self._pattern = Pattern(self._head, rewards.nbytes, observations)
        return b"".join(
            (pattern.head, rewards.tobytes(), pattern.block, _bytes_of(observations), _NO_FINALS)
        )

    def encode(self, steps: Steps) -> bytes:
        """Return the message of ``steps`` of any kind, which have been checked."""
        self._asked = _Question(np.array(steps.environments), answer_flags(steps.flags))
        return encode_steps(steps)

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
            return self._all_answered(pattern.array_in(payload).copy())
        answers = decode_answers(payload)
        _require_about(answers, self._asked)
        if self._asked is self._all_asked:
            head = bytes(payload[: self._head_bytes])
            self._answer_pattern = Pattern(head, 0, answers.actions)
        return answers

    def _all_answered(self, actions: Array) -> Answers:
        asked = self._all_asked
        return Answers(asked.environments.copy(), actions, np.zeros(0), asked.kinds.copy())


def _bytes_of(array: Array) -> bytes | memoryview:
    """Return an array's bytes: a copy of a small one, which is faster, or a view."""
    if array.nbytes < _LARGE_BYTES or not array.flags.c_contiguous:
        return array.tobytes()
    return array.reshape(-1).view(np.uint8).data


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
