"""Learning in a process of its own, alone or with others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import DEFAULT, FloatVector, Learner, NullMetrics, Step, Values, Version
from relaax.errors import ConfigurationError, LearningDiverged
from relaax.learning.filters import Filters, scaled_states
from relaax.learning.off_policy.learner import TransitionBatch
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.steps import EpisodeBatch
from relaax.observations import mapped
from relaax.parameters.driver import Driver
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore, Snapshot

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]

#: Names within a checkpoint, beside the optimiser's slots and the learner's own.
PARAMETERS, COUNTS, STATISTICS = "parameters", "counts", "statistics"


@dataclass(frozen=True)
class Rewards:
    """How rewards are learnt from, once they are filtered."""

    scale: float = 1.0
    clips: bool = False


class InProcess(Learner):
    """Gives ``learner`` the batches that are drawn, with states and rewards as they are learnt of.

    Gradients move the parameters in ``store``, which are published; without it they go on to the
    parameter server, with the statistics that ``filters`` have gathered. Where the learner sets its
    values, the statistics are published behind those of each policy.
    """

    def __init__(
        self,
        learner: Learner,
        filters: Filters,
        rewards: Rewards | None = None,
        store: ParameterStore | None = None,
    ) -> None:
        self.inputs = learner.inputs
        self.learner = learner
        self._filters, self._rewards = filters, rewards or Rewards()
        self._sets_values = bool(learner.values())
        self._statistics = np.concatenate([np.zeros(0, np.float32), *filters.initial()])
        self._store = store
        #: Steps that have learnt of the newest rollouts, and the version that gradients are of.
        self._steps = self._version = 0
        #: Whether no gradient of the batches in hand has moved the parameters so far.
        self._has_learnt_nothing = False
        if store is not None:
            self._drive(store)
        if taken := sorted(self._own_state().keys() & learner.state().keys()):
            raise ConfigurationError(
                f"{type(learner).__name__}: its state has {', '.join(taken)}, which the process of "
                "the learner saves itself: save it by another name"
            )

    def steps(self, batches: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the steps of batches, however old the parameters are that have acted.

        Those of gradients that are applied here are one step. Rollouts without a step are left out
        of batches that should be of the newest parameters.
        """
        fresh = {
            table: batch.chosen(np.flatnonzero(batch.valid.any(axis=0)))
            for table, batch in batches.items()
            if self.inputs[table].is_on_policy and isinstance(batch, RolloutBatch)
        }
        if not all(batch.steps for batch in fresh.values()):
            return
        terms = self._lags([*fresh.values()])
        learnt = self._filtered({**batches, **fresh})
        if self._store is None:
            self._has_learnt_nothing = True
            for step in self.learner.steps(learnt):
                update = step.update and replace(step.update, statistics=self._filters.taken())
                yield replace(step, update=update, terms={**step.terms, **terms})
            return
        made = self._driver.learn(learnt, sum(batch.steps for batch in fresh.values()))
        self._steps += made.updates > 0
        yield replace(made, terms={**made.terms, **terms})

    def take(self, values: Values) -> None:
        """See Learner; LearningDiverged for values that are not finite."""
        self._version = values.version.number
        if values.vector is not None:
            if not np.isfinite(values.vector).all():
                raise LearningDiverged(
                    "the parameters that learners share are not finite: nothing more is learnt "
                    "from them or saved here. Let the parameter server go on from a checkpoint of "
                    "before; if that happens again, lower the learning rate"
                )
            self._steps += self._has_learnt_nothing
            self._has_learnt_nothing = False
        self.learner.take(self._filters.split(values))

    def values(self) -> Mapping[str, FloatVector]:
        """Return values with the filters' statistics behind them; none where others have them."""
        if self._store is not None:
            own = self._store.pull().vector
            return {} if own is None else {DEFAULT: own}
        values = self.learner.values()
        if not self._filters.length:
            return values
        return {name: np.concatenate([own, self._statistics]) for name, own in values.items()}

    def published(self, policy: str, version: Version) -> None:
        """See Learner."""
        self.learner.published(policy, version)

    def state(self) -> Mapping[str, Array]:
        """Return the learner's state; parameters of its own with their slots, or statistics."""
        return {**self.learner.state(), **self._own_state()}

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return a state without numbers of earlier versions, as the learner converts its own.

        They are the count of rollouts that were dropped, and statistics that are elsewhere.
        """
        names = self._own_state().keys()
        own = {name: part for name, part in state.items() if name in names}
        if COUNTS in own:
            own[COUNTS] = own[COUNTS][:3]
        others = {name: part for name, part in state.items() if name not in names}
        others = dict(self.learner.converted(others))
        if not self._sets_values and STATISTICS not in self.learner.state():
            others.pop(STATISTICS, None)
        return {**others, **own}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self.learner.restore(state)
        own = self._own_state().keys()
        if STATISTICS in own:
            self._statistics[:] = state[STATISTICS]
            self._filters.settle(self._statistics)
        if COUNTS in own:
            *counts, self._steps = state[COUNTS].tolist()
        if self._store is not None:
            slots = {name: state[name] for name in own - {PARAMETERS, COUNTS}}
            self._store.restore(Snapshot(state[PARAMETERS], slots, *counts))
            self._drive(self._store)

    def adopt(self, state: Mapping[str, Array], iteration: int) -> None:
        """See Learner."""
        super().adopt(state, iteration)
        self._steps = iteration

    def progress(self) -> Collection[str]:
        """See Learner."""
        counts = [COUNTS] if COUNTS in self._own_state() else []
        return {*super().progress(), *self.learner.progress(), *counts}

    def close(self) -> None:
        """Close the learner."""
        self.learner.close()

    def _own_state(self) -> dict[str, Array]:
        """Return all that is saved beside the learner's state."""
        if self._sets_values:
            return {STATISTICS: self._statistics.copy()} if self._filters.length else {}
        if self._store is None:
            return {COUNTS: np.array([self._steps])} if self.is_on_policy else {}
        snapshot = self._store.snapshot()
        counts = np.array([snapshot.global_t, snapshot.version, self._steps])
        return {PARAMETERS: snapshot.parameters, COUNTS: counts, **snapshot.slots}

    def _drive(self, store: ParameterStore) -> None:
        """Take the values in ``store``, and take updates there from now on."""
        service = ParameterService(store, NullMetrics())
        source = self._filters.bridged(service)
        self.learner.take(source.pull())
        self._driver = Driver(self.learner, source, service)

    def _lags(self, fresh: Sequence[RolloutBatch]) -> dict[str, float]:
        """Return how much older the parameters were that have acted, where that is known."""
        if self._sets_values or not fresh:
            return {}
        version = self._version if self._store is None else self._steps  # as actors know it
        versions = np.concatenate([batch.versions for batch in fresh])
        lags = np.maximum(version - versions, 0)
        return {
            "policy lag": float(lags.mean()),
            "policy lag least": float(lags.min()),
            "policy lag most": float(lags.max()),
        }

    def _filtered(self, batches: Mapping[str, Any]) -> dict[str, Any]:
        """Return batches with states and rewards as they are learnt from.

        Statistics are of fresh batches, if there are any: what is drawn again is counted already.
        Gradients are of states that are filtered by the statistics before them, those that actions
        were chosen with; a learner that sets its values learns of those after them.
        """
        if not self._filters.length and self._rewards == Rewards():
            return dict(batches)
        for table, batch in batches.items():
            if neutral := self._neutral(batch):
                raise ConfigurationError(
                    f"batches of {table!r} are {type(batch).__name__}: the process of a learner "
                    "filters states of rollouts and transitions, and rewards of rollouts. Write "
                    f"{', '.join(neutral)} in the algorithm section, or let prepare of this input "
                    "return a RolloutBatch, as rollouts_of does"
                )
            if self.inputs[table].is_on_policy or not self.is_on_policy:
                self._gather(batch)
        if self._sets_values and self._filters.length:
            self._filters.settle(self._statistics)
        return {table: self._scaled(batch) for table, batch in batches.items()}

    def _neutral(self, batch: Any) -> list[str]:
        """Return the keys that cannot be applied to ``batch``, with values that change nothing."""
        is_rollouts = isinstance(batch, RolloutBatch)
        has_states = is_rollouts or isinstance(batch, TransitionBatch | EpisodeBatch)
        keys = {
            "filter_states: false": self._filters.states and not has_states,
            "filter_rewards: false": self._filters.rewards and not is_rollouts,
            "reward_scale: 1": self._rewards.scale != 1 and not is_rollouts,
            "clip_rewards: false": self._rewards.clips and not is_rollouts,
        }
        return [key for key, is_refused in keys.items() if is_refused]

    def _gather(self, batch: Any) -> None:
        if isinstance(batch, RolloutBatch):
            steps = batch.valid > 0
            self._filters.gather(mapped(lambda part: part[:-1][steps], batch.observations))
            if self._filters.rewards is not None:
                self._filters.rewards.gather(batch.rewards[steps][:, np.newaxis])
        elif isinstance(batch, EpisodeBatch):
            for statistics in batch.statistics:
                self._filters.add(statistics)
        else:
            self._filters.gather(batch.observations)

    def _scaled(self, batch: Any) -> Any:
        if isinstance(batch, EpisodeBatch):
            return batch
        observations = scaled_states(self._filters.states, batch.observations)
        if isinstance(batch, TransitionBatch):
            following = scaled_states(self._filters.states, batch.next_observations)
            return replace(batch, observations=observations, next_observations=following)
        rewards = self._learnt(batch.rewards, batch.valid > 0)
        return replace(batch, observations=observations, rewards=rewards)

    def _learnt(self, rewards: FloatArray, steps: BoolArray) -> FloatArray:
        learnt = np.zeros_like(rewards)
        learnt[steps] = rewards[steps]
        if self._filters.rewards is not None:
            learnt[steps] = self._filters.rewards.scaled(rewards[steps][:, np.newaxis])[:, 0]
        learnt *= np.float32(self._rewards.scale)
        return np.clip(learnt, -1, 1) if self._rewards.clips else learnt
