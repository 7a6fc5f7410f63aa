"""Exploration that differs from environment to environment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import EnvironmentInfo

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


class SlotPlaces:
    """The places, among all environments of the training, of those in an actor's slots."""

    def __init__(self) -> None:
        self._of: dict[int, Callable[[], int]] = {}

    def introduce(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take what is known of the environments in ``slots``."""
        places = [environment.place for environment in environments]
        self._of.update(zip(slots.tolist(), places, strict=True))

    def of(self, slots: IntArray) -> IntArray:
        """Return the places of ``slots`` [B]; the slot, where nothing is known of it."""
        known = self._of
        return np.array([known[slot]() if slot in known else slot for slot in slots.tolist()])


@dataclass(frozen=True)
class Ladder:
    """Sizes of exploration that differ from environment to environment, on ``rungs`` rungs.

    The environment at place k of all of the training is on rung ``k % rungs``, so that as many
    environments as there are rungs cover all of them, however they connect.
    """

    rungs: int = 1
    places: SlotPlaces = field(default_factory=SlotPlaces)

    def sigma_parts(self, slots: IntArray) -> FloatArray:
        """Return the part (rung + 1) / rungs of the largest sigma for slots [B].

        So actors of DDPG differ in seed 004. There, the first of several has no noise at all, which
        is lost data for a learner; here it has the least.
        """
        parts: FloatArray = ((self._rungs_of(slots) + 1) / self.rungs).astype(np.float32)
        return parts

    def epsilon_powers(self, slots: IntArray, exponent: float) -> FloatArray:
        """Return the powers that slots [B] raise epsilon to: 1 + exponent * rung / (rungs - 1).

        Horgan et al. 2018 (https://arxiv.org/abs/1803.00933), section 4: actor i of N has
        epsilon ** (1 + i / (N - 1) * alpha), with epsilon 0.4 and alpha 7.
        """
        steps = max(self.rungs - 1, 1)
        powers: FloatArray = (1 + exponent * self._rungs_of(slots) / steps).astype(np.float32)
        return powers

    def _rungs_of(self, slots: IntArray) -> IntArray:
        if self.rungs == 1:
            return np.zeros(len(slots), np.int64)
        rungs: IntArray = self.places.of(slots) % self.rungs
        return rungs


#: All environments alike.
ONE_RUNG = Ladder()
