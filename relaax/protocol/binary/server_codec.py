"""A server's end of the binary messages about steps, of one connection."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import ProtocolError
from relaax.protocol.binary.messages import decode_steps, encode_answers
from relaax.protocol.binary.pattern import Pattern, is_little_endian
from relaax.protocol.connection import Payload
from relaax.protocol.rewards import NOT_ALLOWED, are_allowed
from relaax.steps import Steps

Array = npt.NDArray[Any]

_HEAD_BYTES = 4


class ServerCodec:
    """Decodes messages of steps and encodes their answers, in turns.

    While no episode starts or ends, a message differs from the one before in its rewards and its
    observations, and an answer in its actions. What stays the same is compared, or sent, as one
    piece of bytes (``benchmarks/codec.py``). The results are those of ``decode_steps`` and
    ``encode_answers``.
    """

    def __init__(self, environments: int) -> None:
        self._count = environments
        self._pattern: Pattern | None = None
        #: The message that the pattern was made of; its arrays cannot be written to.
        self._like: Steps | None = None
        self._answer_pattern: Pattern | None = None
        #: The message that has been decoded last, and whether it is like the pattern.
        self._last: Steps | None = None
        self._is_alike = False

    def decode(self, payload: Payload) -> Steps:
        """Return the steps in ``payload``; ProtocolError for what is none."""
        pattern, like = self._pattern, self._like
        self._is_alike = (
            pattern is not None
            and len(payload) == pattern.array_end + 1
            and payload[-1] == 0  # there are no final observations
            and pattern.matches(payload)
        )
        if self._is_alike and pattern is not None and like is not None:
            rewards = np.frombuffer(payload, "<f8", len(like.flags), len(pattern.head))
            if not are_allowed(rewards):
                raise ProtocolError(f"a reward is {NOT_ALLOWED}")
            self._last = Steps(
                like.environments, like.flags, rewards, pattern.array_in(payload), ()
            )
        else:
            self._last = decode_steps(payload, self._count)
            self._learn_pattern(payload, self._last)
        return self._last

    def encode(self, actions: Array, scores: Array) -> bytes:
        """Return the answer to the message that was decoded last.

        actions: [A, ...], of the environments that want one; scores: float64 [E], of those whose
        episode has ended.
        """
        pattern = self._answer_pattern
        if self._is_alike and pattern is not None and pattern.fits(actions):
            return b"".join((pattern.head, pattern.block, actions.tobytes()))
        last = self._last
        if last is None:
            raise ValueError("no message has been decoded that could be answered")
        payload = encode_answers(last.environments, last.flags, actions, scores)
        if self._is_alike and is_little_endian(actions):
            self._answer_pattern = Pattern(payload[: _head_bytes(last)], 0, actions)
        return payload

    def _learn_pattern(self, payload: Payload, steps: Steps) -> None:
        """Expect messages like this one, if no episode starts or ends in it."""
        if steps.flags.any() or not isinstance(steps.observations, np.ndarray):
            return
        head = bytes(payload[: _head_bytes(steps)])
        self._pattern = Pattern(head, 8 * len(steps.flags), steps.observations)
        self._like = replace(steps, rewards=np.zeros(0), observations=())
        for array in (steps.environments, steps.flags):
            array.setflags(write=False)
        self._answer_pattern = None
        self._is_alike = True


def _head_bytes(steps: Steps) -> int:
    """Return how long a message is up to its rewards, or its answer up to its actions."""
    return _HEAD_BYTES + 3 * len(steps.flags)
