"""The place of a learner, as a builder is told of it."""

from dataclasses import dataclass

import numpy as np

from relaax.learning.policy import CurrentPolicy


@dataclass(frozen=True)
class Home:
    """A worker, or a process of the learner's own."""

    seed: int | None
    random: np.random.Generator
    #: The parameters that are computed with, which the placement changes.
    policy: CurrentPolicy
