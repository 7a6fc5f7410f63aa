"""A short cut for the messages that are nearly all there are.

While no episode starts or ends, a message differs from the one before in its rewards and its
observations, and an answer in its actions. What stays the same is compared, or sent, as one piece.
The bytes are those of ``messages``, and whatever is not plain goes through there.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.arrays import Block, encode_block
from relaax.protocol.binary.messages import (
    Answers,
    decode_answers,
    decode_steps,
    encode_answers,
    encode_steps,
)
from relaax.protocol.rewards import NOT_ALLOWED, are_allowed
from relaax.steps import Steps

Array = npt.NDArray[Any]

_HEAD_BYTES = 4
#: The end of a plain message of steps: there are no final observations.
_NO_FINALS = b"\0"


class _Pattern:
    """What plain messages about the same environments and one kind of array have in common."""

    def __init__(self, head: bytes, between: int, array: Array) -> None:
        #: Up to the rewards.
        self.head = head
        #: From the rewards to the array's own bytes.
        header, *_ = _pieces(array)
        self.block = header
        self.block_at = len(head) + between
        self.array_at = self.block_at + len(header)
        self.array_end = self.array_at + array.nbytes
        self.dtype, self.shape, self.size = array.dtype, array.shape, array.size

    def fits(self, array: Any) -> bool:
        """Return whether ``array`` is of the same kind."""
        return type(array) is np.ndarray and array.shape == self.shape and array.dtype == self.dtype

    def matches(self, payload: bytes) -> bool:
        """Return whether a payload begins, and goes on, like the others."""
        return payload.startswith(self.head) and payload.startswith(self.block, self.block_at)

    def array_in(self, payload: bytes) -> Array:
        """Return the array in a payload that matches."""
        return np.frombuffer(payload, self.dtype, self.size, self.array_at).reshape(self.shape)


class StepsWriter:
    """Encodes messages of steps."""

    def __init__(self) -> None:
        self._pattern: _Pattern | None = None
        self._environments: Array | None = None

    def write(self, steps: Steps) -> bytes:
        """Return the payload, as ``encode_steps`` does."""
        pattern = self._pattern
        if (
            pattern is not None
            and steps.is_plain
            and steps.environments is self._environments
            and pattern.fits(steps.observations)
        ):
            rewards, observations = np.asarray(steps.rewards), np.asarray(steps.observations)
            return b"".join(
                (
                    pattern.head,
                    rewards.astype("<f8", copy=False).tobytes(),
                    pattern.block,
                    observations.tobytes(),
                    _NO_FINALS,
                )
            )
        payload = encode_steps(steps)
        if steps.is_plain and _is_little_endian(steps.observations):
            count = len(steps.flags)
            self._environments = steps.environments
            self._pattern = _Pattern(
                payload[: _HEAD_BYTES + 3 * count], 8 * count, np.asarray(steps.observations)
            )
        return payload


class StepsReader:
    """Decodes messages of steps of one connection."""

    def __init__(self, environments: int) -> None:
        self._count = environments
        self._pattern: _Pattern | None = None
        self._like: Steps | None = None

    def read(self, payload: bytes) -> Steps:
        """Return the steps, as ``decode_steps`` does."""
        pattern, like = self._pattern, self._like
        if (
            pattern is not None
            and like is not None
            and len(payload) == pattern.array_end + 1
            and payload[-1] == 0
            and pattern.matches(payload)
        ):
            rewards = np.frombuffer(payload, "<f8", len(like.flags), len(pattern.head))
            if not are_allowed(rewards):
                raise ProtocolError(f"a reward is {NOT_ALLOWED}")
            return Steps(
                like.environments, like.flags, rewards, pattern.array_in(payload), (), True
            )
        steps = decode_steps(payload, self._count)
        if isinstance(steps.observations, np.ndarray) and not steps.flags.any():
            count = len(steps.flags)
            self._pattern = _Pattern(
                payload[: _HEAD_BYTES + 3 * count], 8 * count, steps.observations
            )
            self._like = steps
        return steps


class AnswersWriter:
    """Encodes answers."""

    def __init__(self) -> None:
        self._pattern: _Pattern | None = None
        self._environments: Array | None = None

    def write(self, steps: Steps, actions: Array, scores: Array) -> bytes:
        """Return the payload, as ``encode_answers`` does."""
        pattern = self._pattern
        is_known = steps.is_plain and steps.environments is self._environments
        if pattern is not None and is_known and pattern.fits(actions):
            return b"".join((pattern.head, pattern.block, actions.tobytes()))
        payload = encode_answers(steps.environments, steps.flags, actions, scores)
        if steps.is_plain and _is_little_endian(actions):
            self._environments = steps.environments
            self._pattern = _Pattern(payload[: _HEAD_BYTES + 3 * len(steps.flags)], 0, actions)
        return payload


class AnswersReader:
    """Decodes answers."""

    def __init__(self) -> None:
        self._pattern: _Pattern | None = None
        self._like: Answers | None = None

    def read(self, payload: bytes) -> Answers:
        """Return the answers, as ``decode_answers`` does.

        While plain answers follow each other, ``environments`` is one object.
        """
        pattern, like = self._pattern, self._like
        if (
            pattern is not None
            and like is not None
            and len(payload) == pattern.array_end
            and pattern.matches(payload)
        ):
            actions = pattern.array_in(payload).copy()
            return Answers(like.environments, actions, like.scores, like.flags)
        answers = decode_answers(payload)
        if len(answers.scores) == 0 and len(answers.actions) == len(answers.environments):
            head = payload[: _HEAD_BYTES + 3 * len(answers.environments)]
            self._pattern, self._like = _Pattern(head, 0, answers.actions), answers
        return answers


def _pieces(array: Array) -> list[Any]:
    block: Block = array
    return encode_block(block)


def _is_little_endian(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.newbyteorder("<") == array.dtype
