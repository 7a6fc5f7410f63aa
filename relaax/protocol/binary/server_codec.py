"""A server's end of the binary messages about steps, of one connection."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState, ProtocolError
from relaax.protocol.binary.messages import Metric, decode_metric, decode_steps, encode_answers
from relaax.protocol.binary.pattern import Pattern, is_little_endian
from relaax.protocol.connection import Payload
from relaax.steps import REWARD_NOT_ALLOWED, Steps, are_rewards_allowed

Array = npt.NDArray[Any]

_HEAD_BYTES = 4


class ServerCodec:
    """Decodes what a client says, and encodes the answers to its steps, in turns.

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

    def decode(self, payload: Payload) -> Steps | Metric:
        """Return what a client says; ProtocolError for nonsense."""
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
        """Return the answer to the steps that were decoded last.

        actions: [A, ...], of the environments that want one; scores: float64 [E], of those whose
        episode has ended. InvalidState for actions that are no array of numbers.
        """
        try:
            return self._encode(np.asarray(actions), scores)
        except (TypeError, ValueError) as error:
            raise InvalidState(f"the algorithm's actions cannot be sent: {error}") from error

    def _encode(self, actions: Array, scores: Array) -> bytes:
        pattern = self._answer_pattern
        if self._is_alike and pattern is not None and pattern.fits(actions):
            return b"".join((pattern.head, pattern.block, actions.tobytes()))
        last = self._last
        if last is None:
            raise RuntimeError("no steps have been decoded that could be answered")
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


def _is_alike(payload: Payload, pattern: Pattern) -> bool:
    """Return whether a message is like the pattern; then there are no final observations."""
    return len(payload) == pattern.array_end + 1 and payload[-1] == 0 and pattern.matches(payload)


def _decode_alike(payload: Payload, pattern: Pattern, like: Steps) -> Steps:
    rewards = np.frombuffer(payload, "<f8", len(like.flags), len(pattern.head))
    if not are_rewards_allowed(rewards):
        raise ProtocolError(f"a reward is {REWARD_NOT_ALLOWED}")
    return Steps(like.environments, like.flags, rewards, pattern.array_in(payload), ())


def _head_bytes(steps: Steps) -> int:
    """Return how long a message is up to its rewards, or its answer up to its actions."""
    return _HEAD_BYTES + 3 * len(steps.flags)
