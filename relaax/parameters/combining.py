"""Rules by which the gradients that come to a parameter server become updates.

The section ``combine_gradients`` of the YAML file switches each of them. Settings that derive from
``SharingSettings`` have it.
"""

from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import FloatVector, Gradient, Section, Statistics
from relaax.algorithm_base.config_base import SWITCHED, require_effect

#: Older gradients than so many updates are not compensated but dropped, where no limit is given.
MOST_COMPENSATED = 64

#: Added to the mean square of gradients below the root, as in the paper.
_EPSILON = 1e-7


class DelaySection(Section):
    """Delay compensation; Zheng et al. 2017 (https://arxiv.org/abs/1609.08326)."""

    #: ``strength``, the paper's lambda (DC-ASGD-c), or its lambda_0 where it is adaptive.
    strength: PositiveFloat = 2.0
    #: Divide ``strength`` by the root of each entry's mean square (DC-ASGD-a).
    adaptive: bool = True
    #: Weight of the past in that mean square, the paper's m.
    decay: float = Field(0.95, ge=0, lt=1)

    @model_validator(mode="after")
    def _decays(self) -> "DelaySection":
        if not self.adaptive:
            require_effect(self, ("decay",), "adaptive: true")
            if "strength" not in self.model_fields_set:
                raise ValueError("adaptive: false needs a strength: the default is an adaptive one")
        return self

    def make(self) -> "DelayCompensation":
        """Return the compensation of one vector."""
        return DelayCompensation(self.strength, self.decay if self.adaptive else None)


class CombineSection(Section):
    """How gradients become updates, in this order: old ones are dropped, compensated, averaged."""

    #: Updates since the parameters that a gradient was computed with, at most; None: any number,
    #: or ``MOST_COMPENSATED`` with ``delay_compensation``.
    max_staleness: NonNegativeInt | None = None
    #: Correct gradients of older parameters: ``true``, or a section.
    delay_compensation: Annotated[DelaySection | None, SWITCHED] = None
    #: Gradients of one update, whoever sends them; their mean is applied.
    average_of: PositiveInt = 1

    def make(self, on_dropped: Callable[[int], object]) -> "Combiner":
        """Return the combiner of one vector, which calls ``on_dropped`` with its count of them."""
        delay, limit = self.delay_compensation, self.max_staleness
        default = inf if delay is None else MOST_COMPENSATED
        return Combiner(
            self.average_of,
            default if limit is None else limit,
            None if delay is None else delay.make(),
            on_dropped,
        )


class DelayCompensation:
    """Estimates a gradient at the present parameters from a gradient at older ones.

    Zheng et al. 2017, algorithm 2: ``g + lambda * g * g * (now - then)``, entry by entry. ``g * g``
    stands for the diagonal of the Hessian matrix. With a ``decay`` (m) lambda is adaptive, as in
    section 6: ``mean_square = m * mean_square + (1 - m) * g * g`` and ``lambda = strength /
    sqrt(mean_square + 1e-7)``.
    """

    def __init__(self, strength: float, decay: float | None) -> None:
        self._strength = strength
        self._decay = decay
        #: float32 [size], of all gradients so far; 0 before the first one.
        self._mean_square: FloatVector | None = None

    def compensated(
        self, gradient: FloatVector, then: FloatVector, now: FloatVector
    ) -> FloatVector:
        """Return the gradient [size] at ``now`` [size], by one [size] of ``then`` [size].

        It stays as it is where the estimate is too large for float32.
        """
        moved = (now - then) * np.float32(self._strength)
        with np.errstate(over="ignore", invalid="ignore"):
            if self._decay is not None:
                moved /= np.sqrt(self._note(np.square(gradient)) + np.float32(_EPSILON))
            estimate: FloatVector = gradient + gradient * (gradient * moved)
        return estimate if np.isfinite(estimate).all() else gradient

    def _note(self, squares: FloatVector) -> FloatVector:
        decay = self._decay or 0.0
        if self._mean_square is None:
            self._mean_square = np.zeros_like(squares)
        self._mean_square *= decay
        self._mean_square += (1 - decay) * squares
        return self._mean_square


class Combiner:
    """Makes updates of the gradients that come, for one vector; its owner holds a lock.

    A gradient is dropped where the parameters have changed more than ``max_staleness`` times since
    it was computed (Nair et al. 2015, https://arxiv.org/abs/1507.04296, section 4.3). Of the others
    the mean of ``average_of`` is one update. The statistics of filters that come with gradients,
    dropped ones too, go on with the next update.

    For delay compensation the parameters are remembered that have been read, by version: those of
    the last ``max_staleness`` versions, a vector each. Gradients of others stay as they are.
    """

    def __init__(
        self,
        average_of: int = 1,
        max_staleness: float = inf,
        compensation: DelayCompensation | None = None,
        on_dropped: Callable[[int], object] = lambda count: None,
    ) -> None:
        self._average_of = average_of
        self._max_staleness = max_staleness
        self._compensation = compensation
        self._on_dropped = on_dropped
        self._read = OrderedDict[int, FloatVector]()
        self._sum: FloatVector | None = None
        self._count = 0
        self._statistics = list[Statistics]()
        #: Gradients that were too old.
        self.dropped = 0

    def remember(self, version: int, parameters: FloatVector) -> None:
        """Remember parameters [size] that are handed out; they are never changed."""
        if self._compensation is None:
            return
        self._read[version] = parameters
        while next(iter(self._read)) < version - self._max_staleness:
            self._read.popitem(last=False)

    @property
    def remembered(self) -> list[int]:
        """The versions of the parameters that are remembered, the oldest first."""
        return [*self._read]

    def add(self, gradient: Gradient, version: int, now: FloatVector) -> Gradient | None:
        """Return the update that a gradient completes, without steps; None until it is complete.

        version, now: the present ones, [size].
        """
        self._statistics.extend(gradient.statistics)
        then = version if gradient.computed_with is None else gradient.computed_with.number
        if version - then > self._max_staleness:
            self.dropped += 1
            self._on_dropped(self.dropped)
            return None
        vector = self._at_present(gradient.vector, then, now)
        self._sum = vector if self._sum is None else self._sum + vector
        self._count += 1
        return self._complete(self._sum) if self._count >= self._average_of else None

    def _at_present(self, gradient: FloatVector, then: int, now: FloatVector) -> FloatVector:
        old = self._read.get(then)
        if self._compensation is None or old is None:
            return gradient
        return self._compensation.compensated(gradient, old[: now.size], now)

    def _complete(self, vector: FloatVector) -> Gradient:
        mean = vector if self._count == 1 else vector / np.float32(self._count)
        update = Gradient(mean, statistics=self._statistics)
        self._sum, self._count, self._statistics = None, 0, []
        return update
