"""A learner of intrinsic rewards that stands before the learner of an algorithm."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector, Gradient, Learner, Step, Values, Version
from relaax.learning.filters import Filters
from relaax.learning.intrinsic.networks import RETURNS, IntrinsicNetworks
from relaax.learning.intrinsic.part_tf import FloatArray, Indices, IntArray, IntrinsicPart, pieces
from relaax.learning.policy import CurrentPolicy
from relaax.learning.returns_tf import n_step_targets
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.parameters.optimizers import Adam, AdamSettings

Array = npt.NDArray[Any]

#: Arrays of the learner's state.
PARAMETERS = "intrinsic/parameters"


@dataclass(frozen=True)
class RewardedRollouts:
    """Rollouts with the rewards that the algorithm learns from, and the part's own lesson."""

    rollouts: RolloutBatch
    #: The steps that are rewarded and learnt from.
    indices: Indices
    #: float32 [T, K]: targets of intrinsic values.
    returns: FloatArray
    terms: Mapping[str, float]


class IntrinsicLearner(Learner):
    """Adds intrinsic rewards to the rollouts of ``learner``, and learns to make them.

    With a value V of its own, a step is paid ``r + weight * (i + (gamma - discount * continues) *
    V(s'))``, where ``discount`` is the algorithm's, and ``continues`` is 0 at the end of an
    episode. The algorithm's value becomes the sum of both. So its temporal difference is the one of
    its own rewards and ``weight`` times ``i + gamma * V(s') - V(s)``, of rewards that go on after
    the end.

    ``filters`` have the statistics that the part needs. ``size``: the parameters of the algorithm's
    network in the vector of ``policy``; those of the part lie behind them. Where the learner sets
    its values, the part has ``own`` ones.
    """

    def __init__(
        self,
        learner: Learner,
        networks: IntrinsicNetworks,
        filters: Filters,
        discount: float,
        policy: CurrentPolicy,
        size: int,
        own: FloatVector,
        random: np.random.Generator,
    ) -> None:
        self.inputs = learner.inputs
        self.learner, self.part = learner, IntrinsicPart(networks, filters)
        self._section, self._discount = networks.section, discount
        self._policy, self._size, self._random = policy, size, random
        self._own = own if learner.values() else None
        self._optimizer = Adam(own.size, AdamSettings())
        self._deviation = filters.others.get(RETURNS)

    def steps(self, batches: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the learner's steps, with the gradient of the part behind its own."""
        paid = {
            table: self.paid(batch, is_fresh=self.inputs[table].is_on_policy)
            for table, batch in batches.items()
            if isinstance(batch, RolloutBatch) and self.inputs[table].takes_intrinsic
        }
        self.part.gather(batches[ROLLOUTS])
        given = {**batches, **{table: each.rollouts for table, each in paid.items()}}
        terms = dict(paid[ROLLOUTS].terms)
        if self._own is not None:
            terms |= self._learn(paid[ROLLOUTS], self._own)
        for step in self.learner.steps(given):
            update = step.update
            if update is not None:
                update, learnt = self._extended(update, paid[ROLLOUTS])
                terms |= learnt
            yield replace(step, update=update, terms={**step.terms, **terms})

    def paid(self, batch: RolloutBatch, *, is_fresh: bool = True) -> RewardedRollouts:
        """Return rollouts with intrinsic rewards; the returns of fresh ones are in statistics.

        The first ones are paid nothing, while there are no statistics to divide by: errors about
        numbers of any size would be rewards of any size.
        """
        counts = self.part.method.counts(batch) & self.part.has_statistics
        indices = np.nonzero(counts)
        rewards, weight = np.zeros_like(batch.rewards), self._section.weight
        rewards[indices] = self.part.rewards(self._vector, batch, indices)
        zeros = np.zeros_like(rewards)
        terms = {"intrinsic reward": float(rewards.sum() / max(len(indices[0]), 1))}
        if self._section.gamma is None or self._deviation is None:
            learnt = replace(batch, rewards=batch.rewards + weight * rewards)
            return RewardedRollouts(learnt, indices, zeros, terms)
        deviation = np.float32(1 / np.ravel(self._deviation.scale.factor)[0])
        values = self.part.values(self._vector, batch) * deviation
        returns, _ = n_step_targets(
            rewards, zeros, batch.valid, values, self._section.gamma, self._section.trace_decay
        )
        if is_fresh:
            self._deviation.gather(returns.numpy()[counts][:, np.newaxis])
        if not self._deviation.has_statistics:
            return RewardedRollouts(batch, np.nonzero(np.zeros_like(counts)), zeros, terms)
        discount_gap = self._section.gamma - self._discount * (1 - batch.terminated)
        intrinsic = batch.valid * (rewards + discount_gap * values[1:]) / deviation
        learnt = replace(batch, rewards=(batch.rewards + weight * intrinsic).astype(np.float32))
        return RewardedRollouts(learnt, indices, returns.numpy() / deviation, terms)

    def take(self, values: Values) -> None:
        """See Learner."""
        self.learner.take(values)

    def values(self) -> Mapping[str, FloatVector]:
        """Return the learner's own."""
        return self.learner.values()

    def published(self, policy: str, version: Version) -> None:
        """See Learner."""
        self.learner.published(policy, version)

    def prepare_updates(self, most: int) -> None:
        """See Learner."""
        self.learner.prepare_updates(most)

    def state(self) -> Mapping[str, Array]:
        """Return the learner's state, and the part's where it has parameters of its own."""
        return {**self.learner.state(), **self._own_state()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """See Learner."""
        self.learner.restore(state)
        for name, array in self._own_state().items():
            array[:] = state[name]

    def progress(self) -> Collection[str]:
        """See Learner."""
        return self.learner.progress()

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """See Learner."""
        own = self._own_state().keys() & state.keys()
        others = {name: part for name, part in state.items() if name not in own}
        return {**self.learner.converted(others), **{name: state[name] for name in own}}

    def close(self) -> None:
        """See Learner."""
        self.learner.close()

    def _own_state(self) -> dict[str, Array]:
        if self._own is None:
            return {}
        slots = {f"intrinsic/{name}": slot for name, slot in self._optimizer.slots().items()}
        return {PARAMETERS: self._own, **slots}

    @property
    def _vector(self) -> FloatVector:
        """The parameters of the part."""
        if self._own is not None:
            return self._own
        vector = self._policy.current.vector
        if vector is None:
            raise RuntimeError("the parameters in use came without their vector")
        return vector[self._size :]

    def _extended(
        self, update: Gradient, paid: RewardedRollouts
    ) -> tuple[Gradient, dict[str, float]]:
        """Return a gradient with that of the part behind it, and terms of the loss."""
        count = len(paid.indices[0])
        some = self._random.permutation(count)[: self._section.batch_size]
        own, terms = self._gradient_of(paid, some)
        return replace(update, vector=np.concatenate([update.vector, own])), terms

    def _learn(self, paid: RewardedRollouts, own: FloatVector) -> dict[str, float]:
        """Move ``own`` by all steps once; return the terms of the loss of the last ones."""
        order, terms = self._random.permutation(len(paid.indices[0])), dict[str, float]()
        for some in pieces(len(order), self._section.batch_size):
            gradient, terms = self._gradient_of(paid, order[some])
            self._optimizer.apply(own, gradient, self._section.learning_rate)
        return terms

    def _gradient_of(
        self, paid: RewardedRollouts, some: IntArray
    ) -> tuple[FloatVector, dict[str, float]]:
        rows, columns = paid.indices
        indices = rows[some], columns[some]
        return self.part.gradient(self._vector, paid.rollouts, indices, paid.returns[indices])
