"""Clip, penalty and learning rate, adapted to the distance that batches move the policy by.

Schulman et al. 2017 (https://arxiv.org/abs/1707.06347), section 4, with the thresholds and factors
of Surreal, which moves the clip in the same way; it is the other way round there, since a larger
clip and a larger learning rate move the policy farther.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector

from .value_scale import ValueScale

#: No number changes as long as the divergence lies between these multiples of the target.
LOW, HIGH = 0.5, 2.0

PENALTY_FACTOR = 1.5
CLIP_FACTOR = 1.2
RATE_FACTOR = 1.5


@dataclass(frozen=True)
class Knobs:
    """The settings of one update, beside its steps."""

    clip: float
    #: Weight of the KL divergence.
    penalty: float
    learning_rate: float


def restrained(value: float, kl: float, target: float, factor: float) -> float:
    """Return ``value``, of which more holds the policy back, after a batch that moved it by kl."""
    if kl > HIGH * target:
        return value * factor
    return value / factor if kl < LOW * target else value


@dataclass(frozen=True)
class Adaptation:
    """Which of the knobs follow the target, and within which limits; None leaves one alone."""

    target: float
    clip_range: tuple[float, float] | None
    penalty_range: tuple[float, float] | None
    learning_rate_range: tuple[float, float] | None

    def after(self, knobs: Knobs, kl: float) -> Knobs:
        """Return the knobs for the batch that follows one that has moved the policy by ``kl``."""
        return Knobs(
            clip=self._loosened(knobs.clip, kl, CLIP_FACTOR, self.clip_range),
            penalty=_within(
                self.penalty_range,
                knobs.penalty,
                restrained(knobs.penalty, kl, self.target, PENALTY_FACTOR),
            ),
            learning_rate=self._loosened(
                knobs.learning_rate, kl, RATE_FACTOR, self.learning_rate_range
            ),
        )

    def restored(self, saved: Knobs, configured: Knobs) -> Knobs:
        """Return the knobs of a training that goes on: only those moved that follow the target."""
        pairs = (
            ("clip", self.clip_range),
            ("penalty", self.penalty_range),
            ("learning_rate", self.learning_rate_range),
        )
        return Knobs(
            **{
                name: getattr(configured, name)
                if limits is None
                else _within(limits, getattr(saved, name), getattr(saved, name))
                for name, limits in pairs
            }
        )

    def _loosened(
        self, value: float, kl: float, factor: float, limits: tuple[float, float] | None
    ) -> float:
        return _within(limits, value, restrained(value, kl, self.target, 1 / factor))


def _within(limits: tuple[float, float] | None, value: float, moved: float) -> float:
    return value if limits is None else min(max(moved, limits[0]), limits[1])


#: Its name within a checkpoint.
KNOBS = "knobs"


class AdaptedKnobs:
    """The knobs of a training as they are now, moved after each batch.

    ``values`` is their scale, which changes with each batch, too; None without one.
    """

    def __init__(
        self, first: Knobs, adaptation: Adaptation, values: ValueScale | None = None
    ) -> None:
        self._first = self.now = first
        self._adaptation = adaptation
        self._values = values

    def vector(self) -> FloatVector:
        """Return the clip and the penalty, float32 [2]."""
        return np.array([self.now.clip, self.now.penalty], np.float32)

    def adapt(self, kl: float) -> None:
        """Adapt to a batch that has moved the policy by ``kl``."""
        self.now = self._adaptation.after(self.now, kl)

    def state(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return the knobs, and the scale, for a checkpoint."""
        scale = {} if self._values is None else self._values.state()
        return {KNOBS: np.array([*vars(self.now).values()]), **scale}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint."""
        self.now = self._adaptation.restored(Knobs(*state[KNOBS].tolist()), self._first)
        if self._values is not None:
            self._values.restore(state)
