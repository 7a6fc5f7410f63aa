"""SAC's learner."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector, LearnerBase, StepResult
from relaax.learning.steps import ACTION, observations_in
from relaax.replay.table import Sample

from .update_tf import SacUpdate, Transitions

Array = npt.NDArray[Any]


class SacLearner(LearnerBase):
    """Makes an update of each batch of transitions."""

    def __init__(
        self,
        update: SacUpdate,
        table: str,
        batch_size: int,
        actions: int,
        random: np.random.Generator,
    ) -> None:
        self.table = table
        self.batch_size = batch_size
        self._update = update
        self._actions = actions
        self._random = random

    def prepare(self, sample: Sample) -> Transitions:
        """Return the transitions of a sample, with noise for two actions of each."""
        columns, count = sample.columns, len(sample.keys)
        return Transitions(
            observations=observations_in(columns),
            actions=columns[ACTION],
            rewards=columns["return"].astype(np.float32),
            discounts=columns["discount"].astype(np.float32),
            next_observations=observations_in(columns, "next_"),
            weights=np.ones(count, np.float32),
            noise=self._random.standard_normal((2, count, self._actions), np.float32),
        )

    def step(self, batch: Transitions) -> StepResult:
        """Make one update."""
        _, terms = self._update(batch)
        return StepResult(terms)

    def parameters(self) -> FloatVector:
        """Return the policy's parameters."""
        return self._update.policy

    def state(self) -> Mapping[str, Array]:
        """Return networks, targets, temperature and what Adam remembers."""
        return self._update.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self._update.restore(state)
