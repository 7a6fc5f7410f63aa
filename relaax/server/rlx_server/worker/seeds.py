"""Seeds of what draws random numbers in a worker, from the number of the worker.

They are below 2**32: ``numpy.random.seed`` and environments take no larger ones.
"""

from enum import IntEnum

import numpy as np
from numpy.random import SeedSequence  # before the fork: workers share the module

#: How many seeds there are.
SEEDS = 2**32


class Purpose(IntEnum):
    """What a worker's seeds are for: an agent's are not those of its environment."""

    BATCH_AGENT = 1
    AGENTS = 2
    ENVIRONMENTS = 3


def first_seed(worker: int, purpose: Purpose) -> int:
    """Return the first seed for ``purpose``, from 0 to ``SEEDS`` - 1.

    ``worker`` is at least 0, and may be larger than a seed. Two workers may have the same seed by
    chance: of a thousand workers, two have in one of 9000 cases.
    """
    mixed = SeedSequence([worker, purpose]).generate_state(1, np.uint32)
    return int(mixed[0])


def seed_after(first: int, number: int) -> int:
    """Return the seed that comes ``number`` after the first one; after the largest comes 0."""
    return (first + number) % SEEDS
