"""Gradients of an objective over rollouts, in TensorFlow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from relaax.learning.arrays import padded_size, zero_padded
from relaax.learning.model import BatchGradient, Objective
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.description import Network
from relaax.learning.networks.layers_tf import ObservationTensors, unroll
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.on_policy.learner import WholeRollouts
from relaax.learning.rollouts import Columns, RolloutBatch
from relaax.observations import mapped

Terms = Mapping[str, tf.Tensor]

#: Batches of dense layers are padded to at least so many rollouts.
_FEW_ROLLOUTS = 8


@dataclass(frozen=True)
class GraphRollouts:
    """K rollouts of T rows inside a graph: the columns of ``RolloutBatch``, in its order.

    Rollouts of zeros may follow, which fill the batch up: not a row of them is valid.
    """

    observations: ObservationTensors
    starts: tf.Tensor
    actions: tf.Tensor
    extras: Mapping[str, tf.Tensor]
    rewards: tf.Tensor
    terminated: tf.Tensor
    valid: tf.Tensor
    on_policy: tf.Tensor
    recurrent_state: tf.Tensor

    def allowed(self, action_mask: str) -> tf.Tensor:
        """Return the observation of that name for each step: uint8 [T, K, N], 1 if allowed.

        A row that is not valid allows all, so that no likelihood there is 0.
        """
        is_no_step = tf.cast(self.valid[..., tf.newaxis] == 0, tf.uint8)
        return tf.maximum(self.observations[action_mask][:-1], is_no_step)


class RolloutGradients(WholeRollouts):
    """A method whose gradients are a pure function of parameters and rollouts.

    Batches are padded to a few sizes, so that few graphs are traced and compiled. ``length`` and
    ``columns`` say what rollouts look like, so that this can be done beforehand.
    """

    def __init__(
        self,
        network: Network,
        tensors: ParameterTensors,
        objective: Objective,
        length: int,
        columns: Columns,
        minibatches: int = 1,
        most_at_once: int | None = None,
    ) -> None:
        super().__init__(minibatches, most_at_once)
        self._network = network
        self._tensors = tensors
        self._objective = objective
        self._length = length
        self._columns = columns
        #: Of batches, in ascending order; see ``prepare``.
        self._prepared_sizes: list[int] = []
        # XLA makes small dense layers faster and convolutions slower; a recurrent layer unrolled
        # over a rollout takes it many seconds to compile, and saves half a millisecond a rollout.
        is_dense = not network.has_convolutions and not network.lstm_size
        self._graph = CompiledFunction(self._gradient, jit_compile=is_dense)

    def gradient(self, parameters: NetworkParameters, minibatch: RolloutBatch) -> BatchGradient:
        """Return the gradient of the mean loss of K rollouts, and means over their steps."""
        rollouts, steps = minibatch, max(minibatch.steps, 1)
        size = self._size_for(rollouts.count)
        vector, terms = self._graph(
            parameters.tensors,
            np.array(1 / rollouts.count, np.float32),
            *(
                mapped(lambda array: zero_padded(array, size, axis=1), column)
                for column in rollouts.columns()
            ),
        )
        means = {name: float(term) / steps for name, term in terms.items()}
        return BatchGradient(vector.numpy(), means)

    def prepare(self, parameters: NetworkParameters, most: int) -> None:
        """Trace and compile the gradients of up to ``most`` rollouts.

        Batches are padded to the sizes that are ready. Of dense layers there are two: padding
        costs them little, and compiling nearly a second.
        """
        largest = padded_size(self.part_size(most))
        sizes = {min(_FEW_ROLLOUTS, largest), largest}
        if self._network.has_convolutions:
            sizes = {2**exponent for exponent in range(largest.bit_length())}
        for size in sorted(sizes.difference(self._prepared_sizes)):
            self.gradient(parameters, RolloutBatch.zeros(size, self._length, self._columns))
        self._prepared_sizes = sorted(sizes.union(self._prepared_sizes))

    def _size_for(self, count: int) -> int:
        """Return how many rollouts a batch of ``count`` is padded to."""
        fitting = [size for size in self._prepared_sizes if size >= count]
        return fitting[0] if fitting else padded_size(count)

    def _gradient(
        self, parts: Sequence[tf.Tensor], scale: tf.Tensor, *columns: ObservationTensors
    ) -> tuple[tf.Tensor, Terms]:
        batch = GraphRollouts(*columns)
        with tf.GradientTape() as tape:
            tape.watch(parts)  # in the order of the manifest
            outputs = unroll(
                self._network,
                self._tensors.by_name(parts),
                batch.observations,
                batch.starts,
                batch.recurrent_state,
                batch.valid,
            )
            loss, terms = self._objective.loss(outputs, batch)
            loss = scale * loss
        # Zeros for what the loss does not depend on, a head that this objective leaves out.
        slopes = tape.gradient(loss, parts, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(slope, [-1]) for slope in slopes], axis=0), dict(terms)
