"""A learner of intrinsic rewards that stands before the learner of an algorithm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector, Gradient, Learner, Step, Values, Version
from relaax.learning.arrays import padded_size, zero_padded
from relaax.learning.distributions.graph_tf import graph_of
from relaax.learning.filters import Filters, scaled_states
from relaax.learning.intrinsic.icm_tf import Icm
from relaax.learning.intrinsic.networks import RETURNS, STATES, VALUE, IntrinsicNetworks
from relaax.learning.intrinsic.rnd_tf import Rnd
from relaax.learning.intrinsic.settings import IcmSection, is_continuous
from relaax.learning.intrinsic.steps_tf import IntrinsicReward, SeenSteps, Vectors
from relaax.learning.networks import initial_parameters
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.layers_tf import ObservationTensors
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.policy import CurrentPolicy
from relaax.learning.previous import previous_input
from relaax.learning.returns_tf import n_step_targets
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.observations import UNNAMED, Observations, mapped
from relaax.parameters.optimizers import Adam, AdamSettings

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: Normalised numbers of observations lie within these: Burda et al. 2018, section 2.4.
MOST_DEVIATIONS = 5.0

#: Arrays of the learner's state.
PARAMETERS = "intrinsic/parameters"


def intrinsic_reward(networks: IntrinsicNetworks) -> IntrinsicReward:
    """Return the part that the section describes."""
    section, learnt = networks.section, networks.learnt
    if isinstance(section, IcmSection):
        distribution = None if is_continuous(networks.actions) else graph_of(networks.actions)
        return Icm(learnt, section.beta, distribution)
    target = section.target(networks.shapes)
    fixed = initial_parameters(target.manifest, "orthogonal", section.target_seed)
    return Rnd(learnt["predictor"], target, fixed)


@dataclass(frozen=True)
class Paid:
    """Rollouts with the rewards that the algorithm learns from, and the part's own lesson."""

    rollouts: RolloutBatch
    #: Rows that are rewarded and learnt from, and their rollouts: [N] each.
    rows: IntArray
    columns: IntArray
    #: float32 [T, K]: what intrinsic values should be.
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
        self.learner, self.networks = learner, networks
        self.method = intrinsic_reward(networks)
        self._section, self._discount = networks.section, discount
        self._policy, self._size, self._random = policy, size, random
        self._own = own if learner.values() else None
        self._optimizer = Adam(own.size, AdamSettings())
        self._states = {
            name.removeprefix(STATES): each
            for name, each in filters.others.items()
            if name.startswith(STATES)
        }
        self._deviation = filters.others.get(RETURNS)
        self._rewards_graph = CompiledFunction(self._rewards, jit_compile=False)
        self._values_graph = CompiledFunction(self._values, jit_compile=False)
        self._gradient_graph = CompiledFunction(self._gradient, jit_compile=False)

    def steps(self, batches: Mapping[str, Any]) -> Iterator[Step]:
        """Yield the learner's steps, with the gradient of the part behind its own."""
        paid = {
            table: self.paid(batch, is_fresh=self.inputs[table].is_on_policy)
            for table, batch in batches.items()
            if isinstance(batch, RolloutBatch) and self.inputs[table].takes_intrinsic
        }
        self._gather(batches[ROLLOUTS])
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

    def paid(self, batch: RolloutBatch, *, is_fresh: bool = True) -> Paid:
        """Return rollouts with intrinsic rewards; the returns of fresh ones are in statistics.

        The first ones are paid nothing, while there are no statistics to divide by: errors about
        numbers of any size would be rewards of any size.
        """
        counts = self.method.counts(batch) & all(s.has_statistics for s in self._states.values())
        rows, columns = np.nonzero(counts)
        rewards = np.zeros_like(batch.rewards)
        none, weight = np.zeros_like(rewards), self._section.weight
        for some in _pieces(len(rows), self._section.batch_size):
            steps, count = self._seen(batch, rows[some], columns[some], none), len(some)
            found = self._rewards_graph(self._vector, *_columns(steps))
            rewards[rows[some], columns[some]] = found.numpy()[:count]
        terms = {"intrinsic reward": float(rewards.sum() / max(len(rows), 1))}
        if self._section.gamma is None or self._deviation is None:
            learnt = replace(batch, rewards=batch.rewards + weight * rewards)
            return Paid(learnt, rows, columns, none, terms)
        deviation = np.float32(1 / np.ravel(self._deviation.scale.factor)[0])
        values = self._row_values(batch) * deviation
        returns, _ = n_step_targets(
            rewards, none, batch.valid, values, self._section.gamma, self._section.trace_decay
        )
        if is_fresh:
            self._deviation.gather(returns.numpy()[counts][:, np.newaxis])
        if not self._deviation.has_statistics:
            return Paid(batch, rows[:0], columns[:0], none, terms)
        apart = self._section.gamma - self._discount * (1 - batch.terminated)
        more = batch.valid * (rewards + apart * values[1:]) / deviation
        learnt = replace(batch, rewards=(batch.rewards + weight * more).astype(np.float32))
        return Paid(learnt, rows, columns, returns.numpy() / deviation, terms)

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
    def _vector(self) -> tuple[tf.Tensor]:
        """The parameters of the part."""
        if self._own is not None:
            return (tf.constant(self._own),)
        vector = self._policy.current.vector
        if vector is None:
            raise RuntimeError("the parameters in use came without their vector")
        return (tf.constant(vector[self._size :]),)

    def _extended(self, update: Gradient, paid: Paid) -> tuple[Gradient, dict[str, float]]:
        """Return a gradient with that of the part behind it, and terms of the loss."""
        count = len(paid.rows)
        some = self._random.permutation(count)[: self._section.batch_size]
        own, terms = self._gradient_of(paid, some)
        return replace(update, vector=np.concatenate([update.vector, own])), terms

    def _learn(self, paid: Paid, own: FloatVector) -> dict[str, float]:
        """Move ``own`` by all steps once; return the terms of the loss of the last ones."""
        order, terms = self._random.permutation(len(paid.rows)), dict[str, float]()
        for some in _pieces(len(order), self._section.batch_size):
            gradient, terms = self._gradient_of(paid, order[some])
            self._optimizer.apply(own, gradient, self._section.learning_rate)
        return terms

    def _gradient_of(self, paid: Paid, some: IntArray) -> tuple[FloatVector, dict[str, float]]:
        rows, columns = paid.rows[some], paid.columns[some]
        steps = self._seen(paid.rollouts, rows, columns, paid.returns)
        vector, terms = self._gradient_graph(self._vector, *_columns(steps))
        gradient = vector.numpy()
        if not np.isfinite(gradient).all():  # it must not spoil the one of the algorithm
            gradient = np.zeros_like(gradient)
        return gradient, {name: float(term) for name, term in terms.items()}

    def _gather(self, batch: RolloutBatch) -> None:
        """Take note of the observations of steps."""
        place = np.nonzero(batch.valid > 0)
        for name, each in self._states.items():
            observations = batch.observations
            part = observations[name] if isinstance(observations, dict) else observations
            each.gather(part[place].reshape(len(place[0]), each.width))

    def _seen(
        self, batch: RolloutBatch, rows: IntArray, columns: IntArray, returns: FloatArray
    ) -> SeenSteps:
        """Return some steps as the graphs are given them, with rows of zeros behind them."""
        actions = batch.actions[rows, columns]
        steps = SeenSteps(
            observations=self._normalized(batch.observations, rows, columns),
            following=self._normalized(batch.observations, rows + 1, columns),
            actions=actions,
            action_inputs=previous_input(self.networks.actions, actions),
            returns=returns[rows, columns],
            weights=np.ones(len(rows), np.float32),
        )
        size = padded_size(max(len(rows), 1))
        return SeenSteps(
            *(
                mapped(lambda part: zero_padded(part, size, axis=0), each)
                for each in _columns(steps)
            )
        )

    def _normalized(self, observations: Observations, rows: IntArray, columns: IntArray) -> Any:
        named = observations if isinstance(observations, dict) else {UNNAMED: observations}
        some = {name: named[name][rows, columns] for name in self._states}
        seen = mapped(_cut, scaled_states(self._states, some))
        return seen[UNNAMED] if seen.keys() == {UNNAMED} else seen

    def _row_values(self, batch: RolloutBatch) -> FloatArray:
        """Return the intrinsic values [T + 1, K] of all rows."""
        values = np.zeros(batch.starts.shape, np.float32)
        rows, columns = np.nonzero(np.ones_like(values))
        for some in _pieces(len(rows), self._section.batch_size):
            states = self._normalized(batch.observations, rows[some], columns[some])
            size = padded_size(len(some))
            states = mapped(lambda part, size=size: zero_padded(part, size, axis=0), states)
            found = self._values_graph(self._vector, states)
            values[rows[some], columns[some]] = found.numpy()[: len(some)]
        return values

    def _vectors(self, parameters: Sequence[tf.Tensor]) -> Vectors:
        parts = tf.split(parameters[0], self.networks.sizes)
        return dict(zip(self.networks.learnt, parts, strict=True))

    def _rewards(self, parameters: Sequence[tf.Tensor], *columns: Any) -> tf.Tensor:
        return self.method.rewards(self._vectors(parameters), SeenSteps(*columns))

    def _values(
        self, parameters: Sequence[tf.Tensor], observations: ObservationTensors
    ) -> tf.Tensor:
        return self._value(self._vectors(parameters), observations)

    def _value(self, vectors: Vectors, observations: ObservationTensors) -> tf.Tensor:
        network = self.networks.learnt[VALUE]
        return outputs_of(network, vectors[VALUE], observations)[VALUE][:, 0]

    def _gradient(
        self, parameters: Sequence[tf.Tensor], *columns: Any
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Return the gradient [size] of the mean loss of steps, and its terms."""
        steps = SeenSteps(*columns)
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            vectors = self._vectors(parameters)
            losses = self.method.losses(vectors, steps)
            if VALUE in self.networks.learnt:
                errors = self._value(vectors, steps.observations) - steps.returns
                losses["intrinsic value loss"] = 0.5 * tf.square(errors)
            count = tf.maximum(tf.reduce_sum(steps.weights), 1.0)
            means = {
                name: tf.reduce_sum(steps.weights * loss) / count for name, loss in losses.items()
            }
            total = tf.add_n([*means.values()])
        return tape.gradient(total, parameters[0]), means


def _columns(steps: SeenSteps) -> list[Any]:
    return [getattr(steps, field.name) for field in fields(steps)]


def _pieces(count: int, size: int) -> Iterator[IntArray]:
    for begin in range(0, count, size):
        yield np.arange(begin, min(begin + size, count))


def _cut(part: FloatArray) -> FloatArray:
    return np.clip(part, -MOST_DEVIATIONS, MOST_DEVIATIONS)
