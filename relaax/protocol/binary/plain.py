"""A short cut for the messages that are nearly all there are.

While no episode starts or ends, a message differs from the one before in its rewards and its
observations, and an answer in its actions. What stays the same is compared, or sent, as one piece.
The bytes are those of ``messages``, and whatever is not plain goes through there.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.messages import decode_steps, encode_answers
from relaax.protocol.binary.pattern import Pattern, is_little_endian
from relaax.protocol.rewards import NOT_ALLOWED, are_allowed
from relaax.steps import Steps

Array = npt.NDArray[Any]

_HEAD_BYTES = 4


class StepsReader:
    """Decodes messages of steps of one connection."""

    def __init__(self, environments: int) -> None:
        self._count = environments
        self._pattern: Pattern | None = None
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
            self._pattern = Pattern(
                payload[: _HEAD_BYTES + 3 * count], 8 * count, steps.observations
            )
            self._like = steps
        return steps


class AnswersWriter:
    """Encodes answers."""

    def __init__(self) -> None:
        self._pattern: Pattern | None = None
        self._environments: Array | None = None

    def write(self, steps: Steps, actions: Array, scores: Array) -> bytes:
        """Return the payload, as ``encode_answers`` does."""
        pattern = self._pattern
        is_known = steps.is_plain and steps.environments is self._environments
        if pattern is not None and is_known and pattern.fits(actions):
            return b"".join((pattern.head, pattern.block, actions.tobytes()))
        payload = encode_answers(steps.environments, steps.flags, actions, scores)
        if steps.is_plain and is_little_endian(actions):
            self._environments = steps.environments
            self._pattern = Pattern(payload[: _HEAD_BYTES + 3 * len(steps.flags)], 0, actions)
        return payload
