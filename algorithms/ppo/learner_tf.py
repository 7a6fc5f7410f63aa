"""PPO's learner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector, LearnerBase, NullMetrics, StepResult
from relaax.learning.filters import Filters, scaled_states
from relaax.learning.model import Gradient
from relaax.learning.networks.manifest import Parameters
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.steps import rollouts_in
from relaax.parameters.optimizers import Optimizer, clip_by_global_norm
from relaax.parameters.parameter_service import ParameterService
from relaax.parameters.parameter_store import ParameterStore, Snapshot
from relaax.parameters.schedule import Remembered, Schedule
from relaax.replay.table import Sample

from .adaptation import Adaptation, Knobs
from .experience import Experience
from .graphs_tf import PpoGraphs

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]

#: Names within a checkpoint, beside the optimiser's slots.
PARAMETERS, COUNTS, KNOBS = "parameters", "counts", "knobs"


@dataclass(frozen=True)
class Rules:
    """How a batch is learnt from."""

    passes: int
    gradient_norm_clipping: float | None
    #: No more updates after this KL divergence, of a pass or of a minibatch; None makes all.
    kl_stop: float | None
    reward_scale: float = 1.0
    clips_rewards: bool = False


class PpoLearner(LearnerBase):
    """Makes passes over each batch of rollouts.

    ``initial`` are the network's parameters and the statistics of ``filters`` behind them, which
    ``optimizer`` merges. The learning rate is that of ``knobs``, which ``adaptation`` moves after
    each batch, times the part that ``annealing`` has after so many environment steps.
    """

    is_on_policy = True

    def __init__(
        self,
        graphs: PpoGraphs,
        unpack: Callable[[FloatVector], Parameters],
        initial: FloatVector,
        optimizer: Optimizer,
        filters: Filters,
        rules: Rules,
        knobs: Knobs,
        adaptation: Adaptation,
        annealing: Schedule,
        table: str,
        batch_size: int,
        random: np.random.Generator,
    ) -> None:
        self.table, self.batch_size = table, batch_size
        self._graphs, self._filters, self._rules = graphs, filters, rules
        self._first_knobs, self._knobs, self._adaptation = knobs, knobs, adaptation
        rate = Remembered(annealing, lambda: self._knobs.learning_rate)
        self._store = ParameterStore(initial, optimizer, rate)
        self._bridge = filters.bridged(ParameterService(self._store, NullMetrics()))
        self._policy = CurrentPolicy(unpack, self._bridge.get())
        self._random = random
        #: Steps that have learnt.
        self._steps = 0

    def prepare(self, sample: Sample) -> RolloutBatch:
        """Return the rollouts of a sample."""
        return rollouts_in(sample.columns)

    def step(self, batch: RolloutBatch) -> StepResult:
        """Make the passes over a batch, however old the parameters are that have acted.

        The ratios are those to the likelihoods of that time.
        """
        rollouts = batch.chosen(np.flatnonzero(batch.valid.any(axis=0)))
        if rollouts.steps == 0:
            return StepResult({}, has_learnt=False)
        experience = self._graphs.experience(self._parameters, self._filtered(rollouts))
        terms = self._learn(experience, batch.steps)
        self._knobs = self._adaptation.after(self._knobs, terms["kl"])
        lags = np.maximum(self._steps - rollouts.versions, 0)
        self._steps += 1
        return StepResult(
            {
                **terms,
                "policy lag": float(lags.mean()),
                "explained variance": explained_variance(experience),
            }
        )

    def parameters(self) -> FloatVector:
        """Return the network's parameters and the filters' statistics."""
        return self._store.read()[0]

    def state(self) -> Mapping[str, Array]:
        """Return parameters, what the optimiser remembers, counts, and what has been adapted."""
        snapshot = self._store.snapshot()
        counts = [snapshot.global_t, snapshot.version, self._steps]
        return {
            PARAMETERS: snapshot.parameters,
            COUNTS: np.array(counts),
            KNOBS: np.array([*vars(self._knobs).values()]),
            **snapshot.slots,
        }

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return a state without the count of rollouts that were dropped, which there was once."""
        return {**state, COUNTS: state[COUNTS][:3]} if COUNTS in state else state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        slots = {n: slot for n, slot in state.items() if n not in (PARAMETERS, COUNTS, KNOBS)}
        global_t, version, self._steps = state[COUNTS].tolist()
        self._knobs = self._adaptation.restored(Knobs(*state[KNOBS].tolist()), self._first_knobs)
        self._store.restore(Snapshot(state[PARAMETERS], slots, global_t, version))
        self._policy.publish(self._bridge.get())

    @property
    def _parameters(self) -> Parameters:
        return self._policy.current.parameters

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
        learnt *= np.float32(self._rules.reward_scale)
        return np.clip(learnt, -1, 1) if self._rules.clips_rewards else learnt

    def _learn(self, experience: Experience, steps: int) -> dict[str, float]:
        """Make the passes; count ``steps``, and return the mean terms of the last one.

        But for ``kl``, which is how far all updates together have moved the policy: the terms of a
        minibatch are those before its own update.
        """
        terms: list[Mapping[str, float]] = []
        made, kl = 0, None
        for made in range(1, self._rules.passes + 1):
            terms, kl = [], None
            if not self._make_pass(experience, steps if made == 1 else 0, terms):
                break
            if self._rules.kl_stop is not None:
                kl = self._moved_by(experience)
                if kl > self._rules.kl_stop:
                    break
        return {
            "passes": float(made),
            **{name: float(np.mean([each[name] for each in terms])) for name in terms[0]},
            "kl": self._moved_by(experience) if kl is None else kl,
        }

    def _moved_by(self, experience: Experience) -> float:
        """Return the KL divergence of the policy as it is from the one before the first pass."""
        return self._graphs.divergence(self._parameters, experience)

    def _make_pass(
        self, experience: Experience, steps: int, terms: list[Mapping[str, float]]
    ) -> bool:
        """Make the updates of a pass, and add their terms; return whether another may follow."""
        for minibatch in experience.minibatches(self._graphs.sequences, self._random):
            gradient = self._graphs.gradient(self._parameters, minibatch, self._knobs)
            terms.append(gradient.terms)
            if self._rules.kl_stop is not None and gradient.terms["kl"] > self._rules.kl_stop:
                return False
            self._apply(gradient, steps)
            steps = 0
        return True

    def _apply(self, gradient: Gradient, steps: int) -> None:
        vector, norm = clip_by_global_norm(gradient.vector, self._rules.gradient_norm_clipping)
        if np.isfinite(norm):
            self._policy.publish(self._bridge.apply(vector, steps, None))


def explained_variance(experience: Experience) -> float:
    """Return which part of the variance of the returns the values explain: 1 at best."""
    valid = experience.valid > 0
    returns, values = experience.returns[valid], experience.values[valid]
    variance = float(returns.var())
    return 1 - float((returns - values).var()) / variance if variance else 0.0
