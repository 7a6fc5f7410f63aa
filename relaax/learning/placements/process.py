"""Learning from rollouts in a process of its own, alone or with others."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    FloatVector,
    Learner,
    LearnerBase,
    NullMetrics,
    ParameterLink,
    Step,
)
from relaax.learning.filters import Filters, scaled_states
from relaax.learning.placements.driver import Driver
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore, Snapshot

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]

#: Names within a checkpoint, beside the optimiser's slots and the method's own.
PARAMETERS, COUNTS = "parameters", "counts"


@dataclass(frozen=True)
class Rewards:
    """How rewards are learnt from, once they are filtered."""

    scale: float = 1.0
    clips: bool = False


class OwnParameters:
    """Parameters of this process: the network's, and the statistics of filters behind them."""

    def __init__(self, store: ParameterStore) -> None:
        self.store = store
        self.service = ParameterService(store, NullMetrics())


class InProcess(LearnerBase):
    """Gives ``learner`` the rollouts that are drawn, and takes its updates of ``policy`` further.

    These are its ``own``, which are published, or those of the parameter server, which several
    learners share. States and rewards are stored as they came: ``filters`` are applied here.
    """

    def __init__(
        self,
        learner: Learner,
        policy: CurrentPolicy,
        filters: Filters,
        rewards: Rewards,
        own: OwnParameters | None,
    ) -> None:
        self.inputs = learner.inputs
        self.publishes = own is not None
        self.learner = learner
        self._policy, self._filters, self._rewards, self._own = policy, filters, rewards, own
        #: Steps that have learnt.
        self._steps = 0
        if own is not None:
            self._drive(own.service)

    def connected(self, parameter_server: ParameterLink) -> None:
        """See LearnerBase: where parameters are shared, these are taken."""
        if self._own is None:
            self._drive(parameter_server, loses=True)

    def step(self, batches: Mapping[str, RolloutBatch]) -> Step:
        """Learn from a batch, however old the parameters are that have acted."""
        (batch,) = batches.values()
        rollouts = batch.chosen(np.flatnonzero(batch.valid.any(axis=0)))
        if rollouts.steps == 0:
            return Step(updates=0)
        lags = np.maximum(self._version - rollouts.versions, 0)
        steps = 0 if self._own is None else rollouts.steps  # the replay counts others
        made = self._driver.learn({ROLLOUTS: self._filtered(rollouts)}, steps)
        self._steps += made.updates > 0
        return replace(made, terms={**made.terms, "policy lag": float(lags.mean())})

    def parameters(self) -> FloatVector:
        """Return the network's parameters; with those of its own, the filters' statistics, too."""
        own = self._own
        vector = self._policy.current.vector if own is None else own.store.pull().vector
        return np.zeros(0, np.float32) if vector is None else vector

    def state(self) -> Mapping[str, Array]:
        """Return counts and what the method has adapted; parameters of its own with their slots."""
        others = self.learner.state()
        if self._own is None:
            return {COUNTS: np.array([self._steps]), **others}
        snapshot = self._own.store.snapshot()
        counts = np.array([snapshot.global_t, snapshot.version, self._steps])
        return {PARAMETERS: snapshot.parameters, COUNTS: counts, **others, **snapshot.slots}

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return a state without the count of rollouts that were dropped, which there was once."""
        return {**state, COUNTS: state[COUNTS][:3]} if COUNTS in state else state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self.learner.restore(state)
        *counts, self._steps = state[COUNTS].tolist()
        if self._own is not None:
            others = {PARAMETERS, COUNTS, *self.learner.state()}
            slots = {name: slot for name, slot in state.items() if name not in others}
            self._own.store.restore(Snapshot(state[PARAMETERS], slots, *counts))
            self._drive(self._own.service)

    @property
    def _version(self) -> int:
        """The version of the newest parameters, as actors know it."""
        return self._policy.current.version.number if self._own is None else self._steps

    def _drive(self, parameter_server: ParameterLink, loses: bool = False) -> None:
        """Take the values of ``parameter_server``, and take updates there from now on."""
        source = self._filters.bridged(parameter_server)
        self.learner.take(source.pull())
        self._driver = Driver(self.learner, source, parameter_server, loses=loses)

    def _filtered(self, rollouts: RolloutBatch) -> RolloutBatch:
        """Return rollouts with states and rewards as they are learnt from.

        They are gathered, and filtered by the statistics before them, those that actions were
        chosen with.
        """
        steps = rollouts.valid > 0
        observations = rollouts.observations
        for name, each in self._filters.states.items():
            part = observations[name] if isinstance(observations, dict) else observations
            each.gather(part[:-1][steps][:, -each.width :])
        return replace(
            rollouts,
            observations=scaled_states(self._filters.states, observations),
            rewards=self._learnt(rollouts.rewards, steps),
        )

    def _learnt(self, rewards: FloatArray, steps: BoolArray) -> FloatArray:
        learnt = np.zeros_like(rewards)
        learnt[steps] = rewards[steps]
        if self._filters.rewards is not None:
            learnt[steps] = self._filters.rewards.filtered(rewards[steps][:, np.newaxis])[:, 0]
        learnt *= np.float32(self._rewards.scale)
        return np.clip(learnt, -1, 1) if self._rewards.clips else learnt
