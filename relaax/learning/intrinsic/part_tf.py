"""Rewards, values and gradients of an intrinsic reward, of chosen steps of rollouts."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.arrays import padded_size, zero_padded
from relaax.learning.distributions.graph_tf import graph_of
from relaax.learning.filters import Filters, ZFilter, scaled_states
from relaax.learning.intrinsic.icm_tf import Icm
from relaax.learning.intrinsic.networks import STATES, VALUE, IntrinsicNetworks
from relaax.learning.intrinsic.rnd_tf import Rnd
from relaax.learning.intrinsic.settings import IcmSection, is_continuous
from relaax.learning.intrinsic.steps_tf import IntrinsicReward, SeenSteps, Vectors
from relaax.learning.networks import initial_parameters
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.layers_tf import ObservationTensors
from relaax.learning.networks.parameters_tf import outputs_of
from relaax.learning.previous import previous_input
from relaax.learning.rollouts import RolloutBatch
from relaax.observations import UNNAMED, Observations, mapped

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: Rows of a batch of rollouts, and their rollouts: [N] each.
Indices = tuple[npt.NDArray[np.intp], ...]

#: Normalised numbers of observations lie within these: Burda et al. 2018, section 2.4.
MOST_DEVIATIONS = 5.0


def intrinsic_reward(networks: IntrinsicNetworks) -> IntrinsicReward:
    """Return the part that the section describes."""
    section, learnt = networks.section, networks.learnt
    if isinstance(section, IcmSection):
        distribution = None if is_continuous(networks.actions) else graph_of(networks.actions)
        return Icm(learnt, section.beta, distribution)
    target = section.target(networks.shapes)
    fixed = initial_parameters(target.manifest, "orthogonal", section.target_seed)
    return Rnd(learnt["predictor"], target, fixed)


class IntrinsicPart:
    """The networks at the parameters of each call, float32 [size]; observations are normalised."""

    def __init__(self, networks: IntrinsicNetworks, filters: Filters) -> None:
        self.networks = networks
        self.method = intrinsic_reward(networks)
        self._size = networks.section.batch_size
        self._states: dict[str, ZFilter] = {
            name.removeprefix(STATES): each
            for name, each in filters.others.items()
            if name.startswith(STATES)
        }
        self._rewards_graph = CompiledFunction(self._rewards, jit_compile=False)
        self._values_graph = CompiledFunction(self._values, jit_compile=False)
        self._gradient_graph = CompiledFunction(self._gradient, jit_compile=False)

    @property
    def has_statistics(self) -> bool:
        """Whether there are statistics that observations are normalised by."""
        return all(each.has_statistics for each in self._states.values())

    def gather(self, batch: RolloutBatch) -> None:
        """Take note of the observations of steps."""
        indices = np.nonzero(batch.valid > 0)
        for name, each in self._states.items():
            observations = batch.observations
            part = observations[name] if isinstance(observations, dict) else observations
            each.gather(part[indices].reshape(len(indices[0]), each.width))

    def rewards(self, vector: FloatVector, batch: RolloutBatch, indices: Indices) -> FloatArray:
        """Return the rewards [N] of steps."""
        rows, columns = indices
        rewards, zeros = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
        for some in pieces(len(rows), self._size):
            steps = self._seen(batch, (rows[some], columns[some]), zeros[some])
            found = self._rewards_graph((tf.constant(vector),), *_columns(steps))
            rewards[some] = found.numpy()[: len(some)]
        return rewards

    def values(self, vector: FloatVector, batch: RolloutBatch) -> FloatArray:
        """Return the intrinsic values [T + 1, K] of all rows."""
        values = np.zeros(batch.starts.shape, np.float32)
        rows, columns = np.nonzero(np.ones_like(values))
        for some in pieces(len(rows), self._size):
            states = self._normalized(batch.observations, (rows[some], columns[some]))
            size = padded_size(len(some))
            states = mapped(lambda part, size=size: zero_padded(part, size, axis=0), states)
            found = self._values_graph((tf.constant(vector),), states)
            values[rows[some], columns[some]] = found.numpy()[: len(some)]
        return values

    def gradient(
        self, vector: FloatVector, batch: RolloutBatch, indices: Indices, returns: FloatArray
    ) -> tuple[FloatVector, dict[str, float]]:
        """Return the gradient of the mean loss of N steps, and its terms.

        returns: targets of intrinsic values, [N]. A gradient that is not finite is one of
        zeros: it must not spoil the algorithm's.
        """
        steps = self._seen(batch, indices, returns)
        found, terms = self._gradient_graph((tf.constant(vector),), *_columns(steps))
        gradient = found.numpy()
        if not np.isfinite(gradient).all():
            gradient = np.zeros_like(gradient)
        return gradient, {name: float(term) for name, term in terms.items()}

    def _seen(self, batch: RolloutBatch, indices: Indices, returns: FloatArray) -> SeenSteps:
        """Return some steps as the graphs are given them, with rows of zeros behind them."""
        rows, columns = indices
        actions = batch.actions[indices]
        steps = SeenSteps(
            observations=self._normalized(batch.observations, indices),
            following=self._normalized(batch.observations, (rows + 1, columns)),
            actions=actions,
            action_inputs=previous_input(self.networks.actions, actions),
            returns=returns,
            weights=np.ones(len(rows), np.float32),
        )
        size = padded_size(max(len(rows), 1))
        return SeenSteps(
            *(
                mapped(lambda part: zero_padded(part, size, axis=0), each)
                for each in _columns(steps)
            )
        )

    def _normalized(self, observations: Observations, indices: Indices) -> Any:
        named = observations if isinstance(observations, dict) else {UNNAMED: observations}
        some = {name: named[name][indices] for name in self._states}
        seen = mapped(_cut, scaled_states(self._states, some))
        return seen[UNNAMED] if seen.keys() == {UNNAMED} else seen

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


def pieces(count: int, size: int) -> Iterator[IntArray]:
    """Yield 0 to ``count`` in parts of ``size``."""
    for begin in range(0, count, size):
        yield np.arange(begin, min(begin + size, count))


def _cut(part: FloatArray) -> FloatArray:
    return np.clip(part, -MOST_DEVIATIONS, MOST_DEVIATIONS)
