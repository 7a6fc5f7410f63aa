"""What actions are to the rest of an algorithm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions import Distribution
from relaax.learning.networks import POLICY, Head
from relaax.spaces import Space

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Actions:
    """How actions are drawn, and what is said of them elsewhere."""

    distribution: Distribution
    space: Space
    #: How many actions there are, or numbers in an action, as checkpoints have it.
    size: int | list[int]
    #: What else a checkpoint must agree on, as JSON values.
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    #: The head that puts out what the distribution is made of; None: all depends on the state.
    policy: Head | None = None
    #: The lowest and the highest actions that an environment takes; None if any.
    bounds: tuple[FloatArray, FloatArray] | None = None

    @property
    def head(self) -> Head:
        """The head, the default filled in."""
        return self.policy or Head(POLICY, self.distribution.outputs)
