"""The numbers behind a population's parameters: a stamp of the generation, and digests of keys.

A policy is published with its *stamp*, two numbers that no other generation has, so that an episode
counts for the candidates that it was played with and for no others, whatever happens to versions.
Behind the stamp are digests of the keys that workers apply, which must be the learner's, and the
numbers that workers make candidates with.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.errors import OtherConfiguration
from relaax.learning.rollouts.labels import STAMP_SIZE


def stamp_of(*content: npt.ArrayLike) -> FloatVector:
    """Return the stamp float32 [2] of arrays: other content has another stamp."""
    digest = hashlib.blake2b(digest_size=3 * STAMP_SIZE)
    for each in content:
        digest.update(np.ascontiguousarray(each).tobytes())
    return _three_byte_numbers(digest.digest())


def noise_of(stamp: FloatVector, number: int, size: int) -> FloatVector:
    """Return noise float32 [size], the same in every process: another one of each number."""
    seed = [*stamp.astype(np.int64), number]
    return np.random.default_rng(seed).standard_normal(size, np.float32)


class Imprint:
    """Writes the numbers behind ``size`` parameters, and reads them in workers.

    ``keys`` are values by name that workers apply; ``own`` are the numbers at first that candidates
    are made with, which workers take from the vector. ``tail`` is the length of filters' statistics
    behind them.
    """

    def __init__(
        self, size: int, keys: Mapping[str, Any], own: Sequence[float] = (), tail: int = 0
    ) -> None:
        self._names = [*keys]
        digests = [_digest(value) for value in keys.values()]
        self._digests, self._own = np.array(digests, np.float32), np.array(own, np.float32)
        first = size + STAMP_SIZE
        self._keys = slice(first, first + len(digests))
        #: Where the stamp and the own numbers are in a vector.
        self.stamp = slice(size, first)
        self.own = slice(self._keys.stop, self._keys.stop + len(own))
        self._length = self.own.stop + tail

    def first_numbers(self) -> FloatVector:
        """Return the numbers before anything is published; such episodes do not count."""
        return self.numbers(np.zeros(STAMP_SIZE, np.float32), self._own)

    def numbers(self, stamp: FloatVector, own: FloatVector) -> FloatVector:
        """Return the numbers behind parameters."""
        return np.concatenate([stamp, self._digests, own])

    def require(self, vector: FloatVector) -> None:
        """Raise OtherConfiguration for a vector of a process with other keys than these."""
        if len(vector) != self._length:
            raise OtherConfiguration(
                f"the population's vectors have {len(vector):,} numbers, and {self._length:,} by "
                "the configuration here, as with another network or filter_states. Let all "
                "processes of a training read one configuration"
            )
        is_other = vector[self._keys] != self._digests
        others = [self._names[place] for place in np.flatnonzero(is_other)]
        if others:
            raise OtherConfiguration(
                f"{', '.join(others)}: the population was published with another value than the "
                "one here. Let all processes of a training read one configuration"
            )


def _digest(value: Any) -> int:
    """Return a whole number that other values hardly have, below 2**24."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=3).digest())


def _three_byte_numbers(digest: bytes) -> FloatVector:
    numbers = [int.from_bytes(digest[begin : begin + 3]) for begin in range(0, len(digest), 3)]
    return np.array(numbers, np.float32)
