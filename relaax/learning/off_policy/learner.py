"""Makes an update of each batch of transitions that is drawn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    FloatVector,
    Gradient,
    Input,
    Learner,
    LearnerBase,
    ParameterLink,
    Step,
    Values,
    Version,
)
from relaax.learning.filters import Filters, scaled_states
from relaax.learning.off_policy.settings import PrioritySection
from relaax.learning.placements.driver import Driver
from relaax.learning.steps import ACTION, extras_in, observations_in, side_by_side
from relaax.observations import Observations, mapped
from relaax.parameters.schedule import Remembered
from relaax.replay.table import Sample

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

#: The names that a learner's state has for its count of updates, and for statistics of states.
UPDATES, STATISTICS = "updates", "statistics"


@dataclass(frozen=True)
class TransitionBatch:
    """B transitions over one step or several, as numpy arrays or tensors."""

    #: [B, ...], or such arrays by name.
    observations: Any
    #: [B, ...]
    actions: Any
    #: float32 [B]: discounted sums over the steps of each transition.
    rewards: Any
    #: float32 [B]: of the value of what follows; 0 behind the end of an episode.
    discounts: Any
    #: Like ``observations``.
    next_observations: Any
    #: float32 [B]: how much each counts.
    weights: Any
    #: float32: what an update draws its actions with.
    noise: Any
    #: [B, ...] by name: what was recorded of the choices of these actions.
    extras: Mapping[str, Any] = field(default_factory=dict)


class Update(Protocol):
    """Changes what an algorithm learns by one batch."""

    @property
    def policy(self) -> FloatVector:
        """What actors act with, float32 [size]."""

    def __call__(
        self, batch: TransitionBatch, number: int
    ) -> tuple[FloatArray, Mapping[str, float]]:
        """Make the update of this number, from 1; return errors float32 [B] and terms."""

    def gradient(
        self, batch: TransitionBatch
    ) -> tuple[FloatVector, FloatArray, Mapping[str, float]]:
        """Return the gradients of all that is learnt, joined [sizes], errors [B] and terms."""

    def load(self, joined: FloatVector, number: int) -> None:
        """Take all that is learnt [sizes] after the update of this number; targets follow."""

    def begin(self, joined: FloatVector) -> None:
        """Take all that is learnt [sizes] before the first update; targets are copies."""

    def state(self) -> dict[str, Array]:
        """Return all variables by name."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""


class OffPolicyLearner(Learner, LearnerBase):
    """Draws, weighs, and updates; ``noise`` returns what an update of B transitions draws with.

    Observations are ``history_len`` states, side by side along the last axis. They are stored as
    they came: ``filters`` gather those of each batch, and scale them by statistics that are
    published behind the policy.
    With ``shares_gradients`` it is one of several learners: the parameter server makes the updates.
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
        filters: Filters | None = None,
    ) -> None:
        self._table = table
        self.inputs = {table: Input(batch_size, self.prepare)}
        self._update = update
        self._noise = noise
        self._priorities = priorities
        self._beta = None if priorities is None else Remembered(priorities.beta_schedule())
        self._updates = 0
        self.publishes = not shares_gradients
        #: Where gradients are shared: what pushes them, and the values that they are computed at.
        self._driver: Driver | None = None
        self._version: Version | None = None
        self._history_len = history_len
        self._filters = filters or Filters()
        #: Of all batches so far; with other learners the parameter server has them.
        self._statistics = np.concatenate([np.zeros(0, np.float32), *self._filters.initial()])

    def connected(self, parameter_server: ParameterLink) -> None:
        """Share gradients with other learners, if it was made for that."""
        if not self.publishes:
            source = self._filters.bridged(parameter_server)
            self._begin(source.pull())
            self._driver = Driver(self, source, parameter_server, loses=True)

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

    def step(self, batches: Mapping[str, TransitionBatch]) -> Step:
        """Make one update."""
        if self._driver is None:
            return next(self.steps(batches))
        return self._driver.learn(batches)

    def steps(self, batches: Mapping[str, TransitionBatch]) -> Iterator[Step]:
        """Yield an update that is made, or, where they are shared, the gradient for it."""
        batch, update = self._filtered(batches[self._table]), None
        if self.publishes:
            errors, terms = self._update(batch, self._updates + 1)
            self._updates += 1
        else:
            gradient, errors, terms = self._update.gradient(batch)
            update = Gradient(gradient, self._version)
        priorities = dict[str, npt.NDArray[np.float64]]()
        if self._priorities is not None:
            found = errors.astype(np.float64) + self._priorities.least_priority
            priorities[self._table] = found
        yield Step(priorities=priorities, terms=terms, update=update)

    def take(self, values: Values) -> None:
        """Go on with the values that a gradient led to; targets follow."""
        self._version = values.version
        if values.vector is not None:
            self._updates += 1
            self._update.load(values.vector, self._updates)

    def parameters(self) -> FloatVector:
        """Return the policy's parameters, and the statistics of filters behind them."""
        return np.concatenate([self._update.policy, self._statistics])

    def state(self) -> Mapping[str, Array]:
        """Return all variables, what Adam remembers of them, and the count of updates."""
        state = {**self._update.state(), UPDATES: np.array([self._updates])}
        if self._beta is not None:
            state |= self._beta.slots()
        if self._filters.states:
            state[STATISTICS] = self._statistics.copy()
        return state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self._update.restore(state)
        self._updates = int(state[UPDATES][0])
        if self._filters.states:
            self._statistics[:] = state[STATISTICS]
            self._filters.settle(self._statistics)
        if self._beta is not None:
            self._beta.restore(state, self._updates)

    def _begin(self, values: Values) -> None:
        """Take the first values of the parameter server; before any update, targets are copies."""
        if values.vector is None:
            raise RuntimeError("the first values of the parameter server came without their vector")
        self._version = values.version
        if self._updates:
            self._update.load(values.vector, self._updates)
        else:
            self._update.begin(values.vector)

    def _observations(self, columns: Mapping[str, Array], prefix: str = "") -> Observations:
        found = observations_in(columns, prefix)
        return found if self._history_len == 1 else mapped(side_by_side, found)

    def _filtered(self, batch: TransitionBatch) -> TransitionBatch:
        """Return a batch with states as networks see them; its own states count already."""
        filters = self._filters
        if not filters.states:
            return batch
        filters.gather(batch.observations)
        if self.publishes:
            filters.settle(self._statistics)
        return replace(
            batch,
            observations=scaled_states(filters.states, batch.observations),
            next_observations=scaled_states(filters.states, batch.next_observations),
        )

    def _weights(self, sample: Sample) -> FloatArray:
        """Return (N P(i))**-beta over the largest of it, [B]; Schaul et al. 2016, section 3.4."""
        if self._beta is None:
            return np.ones(len(sample.keys), np.float32)
        weights = (sample.probabilities / sample.least_probability) ** -self._beta(self._updates)
        return weights.astype(np.float32)
