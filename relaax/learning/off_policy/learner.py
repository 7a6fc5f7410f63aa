"""Makes an update of each batch of transitions that is drawn."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Gradient,
    Input,
    Learner,
    Step,
    Values,
    Version,
)
from relaax.learning.off_policy.settings import PrioritySection
from relaax.learning.steps import ACTION, extras_in, observations_in, side_by_side
from relaax.observations import Observations, mapped
from relaax.parameters.schedule import Remembered
from relaax.replay.table import Sample

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: The name that a learner's state has for its count of updates.
UPDATES = "updates"


@dataclass(frozen=True)
class TransitionBatch:
    """B transitions over one step or several, as numpy arrays or tensors."""

    #: [B, ...], or such arrays by name.
    observations: Any
    #: [B, ...]
    actions: Any
    #: float32 [B]: discounted sums over the steps of each transition.
    rewards: Any
    #: float32 [B]: of the value of the next state; 0 behind the end of an episode.
    discounts: Any
    #: Like ``observations``.
    next_observations: Any
    #: float32 [B]: how much each counts.
    weights: Any
    #: float32: the noise that an update draws its actions with.
    noise: Any
    #: [B, ...] by name: numbers recorded when these actions were chosen.
    extras: Mapping[str, Any] = field(default_factory=dict)


class Update(Protocol):
    """Changes the variables of an algorithm by one batch."""

    @property
    def policy(self) -> FloatVector:
        """The parameters that actors act with, float32 [size]."""

    def __call__(
        self, batch: TransitionBatch, number: int
    ) -> tuple[FloatArray, Mapping[str, float]]:
        """Make the update of this number, from 1; return errors float32 [B] and terms."""

    def gradient(
        self, batch: TransitionBatch
    ) -> tuple[FloatVector, FloatArray, Mapping[str, float]]:
        """Return the gradients of all that is learnt, joined [sizes], errors [B] and terms."""

    def load(self, joined: FloatVector, before: int, number: int) -> None:
        """Take all that is learnt [sizes] after the updates behind ``before`` up to ``number``.

        Targets follow where one of these moves them.
        """

    def begin(self, joined: FloatVector) -> None:
        """Take all that is learnt [sizes] before the first update; targets are copies."""

    def state(self) -> dict[str, Array]:
        """Return all variables by name."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""


class OffPolicyLearner(Learner):
    """Draws, weighs, and updates; ``noise`` returns the noise of an update of B transitions.

    Observations are ``history_len`` states, side by side along the last axis. With
    ``shares_gradients`` it is one of several learners: gradients move the values elsewhere.
    """

    def __init__(
        self,
        update: Update,
        table: str,
        batch_size: int,
        noise: Callable[[int], FloatArray],
        priorities: PrioritySection | None = None,
        shares_gradients: bool = False,
        history_len: int = 1,
    ) -> None:
        self._table = table
        self.inputs = {table: Input(batch_size, self.prepare)}
        self._update = update
        self._noise = noise
        self._priorities = priorities
        self._beta = None if priorities is None else Remembered(priorities.beta_schedule())
        self._updates = 0
        self._shares_gradients = shares_gradients
        #: Of the values that gradients are computed at, where they are shared.
        self._version: Version | None = None
        self._history_len = history_len

    def prepare(self, sample: Sample) -> TransitionBatch:
        """Return the transitions of a sample."""
        columns, count = sample.columns, len(sample.keys)
        return TransitionBatch(
            observations=self._observations(columns),
            actions=columns[ACTION],
            rewards=columns["return"].astype(np.float32),
            discounts=columns["discount"].astype(np.float32),
            next_observations=self._observations(columns, "next_"),
            weights=self._weights(sample),
            noise=self._noise(count),
            extras=extras_in(columns),
        )

    def steps(self, batches: Mapping[str, TransitionBatch]) -> Iterator[Step]:
        """Yield an update that is made, or, where they are shared, the gradient for it."""
        batch, update = batches[self._table], None
        if self._shares_gradients:
            gradient, errors, terms = self._update.gradient(batch)
            update = Gradient(gradient, self._version)
        else:
            errors, terms = self._update(batch, self._updates + 1)
            self._updates += 1
        priorities = dict[str, npt.NDArray[np.float64]]()
        if self._priorities is not None:
            found = errors.astype(np.float64) + self._priorities.least_priority
            priorities[self._table] = found
        yield Step(priorities=priorities, terms=terms, update=update)

    def take(self, values: Values) -> None:
        """Go on with values that are elsewhere: the first ones, or those after an update.

        Targets follow after so many updates of all learners; where none is known here they are
        copies.
        """
        is_new = self._version is None and not self._updates
        self._version = values.version
        if values.vector is None:
            return
        before, self._updates = self._updates, values.version.number
        if is_new:
            self._update.begin(values.vector)
        else:
            self._update.load(values.vector, before, self._updates)

    def values(self) -> Mapping[str, FloatVector]:
        """Return the policy's parameters, unless they are elsewhere."""
        return {} if self._shares_gradients else {DEFAULT: self._update.policy}

    def state(self) -> Mapping[str, Array]:
        """Return all variables, Adam's statistics of them, and the count of updates."""
        state = {**self._update.state(), UPDATES: np.array([self._updates])}
        if self._beta is not None:
            state |= self._beta.slots()
        return state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self._update.restore(state)
        self._updates = int(state[UPDATES][0])
        if self._beta is not None:
            self._beta.restore(state, self._updates)

    def progress(self) -> Collection[str]:
        """See Learner: targets and priorities follow this learner's own updates."""
        return {*super().progress(), UPDATES}

    def _observations(self, columns: Mapping[str, Array], prefix: str = "") -> Observations:
        found = observations_in(columns, prefix)
        return found if self._history_len == 1 else mapped(side_by_side, found)

    def _weights(self, sample: Sample) -> FloatArray:
        """Return (N P(i))**-beta over the largest of it, [B]; Schaul et al. 2016, section 3.4."""
        if self._beta is None:
            return np.ones(len(sample.keys), np.float32)
        weights = (sample.probabilities / sample.least_probability) ** -self._beta(self._updates)
        return weights.astype(np.float32)
