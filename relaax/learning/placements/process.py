"""Learning from rollouts in a process of its own, with parameters of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector, Input, LearnerBase, NullMetrics, Step
from relaax.learning.filters import Filters, ParameterSource, scaled_states
from relaax.learning.networks.manifest import Parameters
from relaax.learning.on_policy.learner import OnPolicyLearner
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.steps import rollouts_in
from relaax.parameters.optimizers import Optimizer
from relaax.parameters.parameter_service import ParameterService
from relaax.parameters.parameter_store import ParameterStore, Snapshot
from relaax.replay.table import Sample

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
    """A ``ParameterStore`` of this process, seen as a parameter server.

    ``initial`` are the network's parameters and the statistics of ``filters`` behind them, which
    ``optimizer`` merges.
    """

    def __init__(
        self,
        initial: FloatVector,
        optimizer: Optimizer,
        learning_rate: Callable[[float], float],
        filters: Filters,
        unpack: Callable[[FloatVector], Parameters],
    ) -> None:
        self.store = ParameterStore(initial, optimizer, learning_rate)
        self.counter = ParameterService(self.store, NullMetrics())
        self.filters = filters
        self.source: ParameterSource = filters.bridged(self.counter)
        self.policy = CurrentPolicy(unpack, self.source.get())


class InProcess(LearnerBase):
    """Gives ``learner`` the rollouts that are drawn of ``table``, ``batch_size`` at once.

    States and rewards are stored as they came: they are filtered here.
    """

    def __init__(
        self,
        learner: OnPolicyLearner[Any],
        own: OwnParameters,
        rewards: Rewards,
        table: str,
        batch_size: int,
    ) -> None:
        self._table = table
        self.inputs = {table: Input(batch_size, self.prepare, is_on_policy=True)}
        self.learner = learner
        self._own, self._filters, self._rewards = own, own.filters, rewards
        #: Steps that have learnt.
        self._steps = 0

    def prepare(self, sample: Sample) -> RolloutBatch:
        """Return the rollouts of a sample."""
        return rollouts_in(sample.columns)

    def step(self, batches: Mapping[str, RolloutBatch]) -> Step:
        """Learn from a batch, however old the parameters are that have acted."""
        batch = batches[self._table]
        rollouts = batch.chosen(np.flatnonzero(batch.valid.any(axis=0)))
        if rollouts.steps == 0:
            return Step(updates=0)
        made = self.learner.learn(self._filtered(rollouts))
        lags = np.maximum(self._steps - rollouts.versions, 0)
        self._steps += made.updates > 0
        return replace(made, terms={**made.terms, "policy lag": float(lags.mean())})

    def parameters(self) -> FloatVector:
        """Return the network's parameters and the filters' statistics."""
        return self._own.store.read()[0]

    def state(self) -> Mapping[str, Array]:
        """Return parameters, the optimiser's memory, counts, and what the method has adapted."""
        snapshot = self._own.store.snapshot()
        counts = [snapshot.global_t, snapshot.version, self._steps]
        return {
            PARAMETERS: snapshot.parameters,
            COUNTS: np.array(counts),
            **self.learner.method.state(),
            **snapshot.slots,
        }

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return a state without the count of rollouts that were dropped, which there was once."""
        return {**state, COUNTS: state[COUNTS][:3]} if COUNTS in state else state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        others = {PARAMETERS, COUNTS, *self.learner.method.state()}
        slots = {name: slot for name, slot in state.items() if name not in others}
        global_t, version, self._steps = state[COUNTS].tolist()
        self.learner.method.restore(state)
        self._own.store.restore(Snapshot(state[PARAMETERS], slots, global_t, version))
        self._own.policy.publish(self._own.source.get())

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
