"""The model: choosing actions and computing gradients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.arrays import zero_padded

from ..network import Network
from ..rollouts import RolloutBatch
from ..settings import Settings
from . import dense, layers, losses, targets
from .compiled import CompiledFunction

FloatArray = npt.NDArray[np.float32]
Tensors = Mapping[str, tf.Tensor]


@dataclass(frozen=True)
class Parameters:
    """The network's parameters at one version, as TensorFlow and as numpy want them."""

    #: One whole vector, or one for each entry of the manifest.
    tensors: tuple[tf.Tensor, ...]
    arrays: Mapping[str, FloatArray]


@dataclass(frozen=True)
class Decision:
    """What the network says to a batch of observations."""

    #: int64 [B]
    actions: npt.NDArray[np.int64]
    #: float32 [B], of those actions.
    log_probabilities: FloatArray
    #: float32 [B]
    values: FloatArray
    #: float32 [2, B, H], for the next step; H is 0 without a recurrent layer.
    recurrent_state: FloatArray


@dataclass(frozen=True)
class Gradients:
    """What a batch of rollouts teaches."""

    #: float32 [size], in the order of the manifest: the mean of the rollouts' gradients.
    vector: FloatVector
    #: Sums over all steps.
    policy_loss: float
    value_loss: float
    entropy: float


class Model:
    """Pure functions of parameters and a batch; it knows nothing of workers or servers.

    Batches are padded to a few sizes, so that few graphs are traced and compiled.
    """

    def __init__(self, network: Network, settings: Settings) -> None:
        self.network = network
        self.manifest = network.manifest()
        self._settings = settings
        # XLA makes small dense layers faster and convolutions slower; a recurrent layer unrolled
        # over a rollout takes it many seconds to compile, and saves half a millisecond a rollout.
        is_dense = not network.convolutions
        # Under XLA splitting the vector in the graph is free, and one argument is passed faster
        # than many; elsewhere it would cost a millisecond a call (2.7 MB).
        self._splits_in_graph = is_dense
        self._acts_in_numpy = is_dense and not network.lstm_size
        self._act = CompiledFunction(self._act_graph, jit_compile=is_dense)
        #: Of batches of rollouts, in ascending order; see ``prepare_gradients``.
        self._prepared_sizes: list[int] = []
        self._gradients = CompiledFunction(
            self._gradients_graph, jit_compile=is_dense and not network.lstm_size
        )

    def unpack(self, vector: FloatVector) -> Parameters:
        """Return the tensors of a flat vector [size]; do it once for each new version."""
        views = self.manifest.unpack(vector)
        parts = [vector] if self._splits_in_graph else list(views.values())
        return Parameters(tuple(tf.convert_to_tensor(part) for part in parts), views)

    def initial_recurrent_state(self, batch: int = 1) -> FloatArray:
        """Return the state at the start of an episode: zeros [2, B, H]."""
        return np.zeros((2, batch, self.network.lstm_size), np.float32)

    def act(
        self,
        parameters: Parameters,
        observations: npt.NDArray[Any],
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Decision:
        """Choose actions for ``observations`` [B, ...].

        ``noise`` [B, A] makes the choice: with independent standard Gumbel values it is a sample
        of the policy (the Gumbel-max trick, Gumbel 1954), with zeros the most probable action.
        """
        if self._acts_in_numpy:
            logits, values = dense.forward(self.network, parameters.arrays, observations)
            return Decision(*dense.choose(logits, noise), values, recurrent_state)
        count = len(observations)
        size = padded_size(count)
        actions, log_probabilities, values, state = self._act(
            parameters.tensors,
            zero_padded(observations, size, axis=0),
            zero_padded(recurrent_state, size, axis=1),
            zero_padded(noise, size, axis=0),
        )
        return Decision(
            actions.numpy()[:count],
            log_probabilities.numpy()[:count],
            values.numpy()[:count],
            state.numpy()[:, :count],
        )

    def gradients(self, parameters: Parameters, rollouts: RolloutBatch) -> Gradients:
        """Return the gradient of the mean loss of K rollouts.

        loss = policy loss - entropy_beta * entropy + value_loss_weight * value loss.
        """
        count = rollouts.count
        size = self._size_of_gradients(count)
        vector, policy_loss, value_loss, entropy = self._gradients(
            parameters.tensors,
            *(zero_padded(array, size, axis=1) for array in rollouts.arrays()),
            np.array(1 / count, np.float32),
        )
        return Gradients(vector.numpy(), float(policy_loss), float(value_loss), float(entropy))

    def prepare_gradients(self, parameters: Parameters, dtype: npt.DTypeLike, most: int) -> None:
        """Trace and compile the gradients of up to ``most`` rollouts, of observations ``dtype``.

        Batches are padded to the sizes that are ready. Of dense layers there are two: padding
        costs them little, and compiling nearly a second.
        """
        largest = padded_size(most)
        sizes = {min(8, largest), largest}
        if self.network.convolutions:
            sizes = {2**exponent for exponent in range(largest.bit_length())}
        for size in sorted(sizes.difference(self._prepared_sizes)):
            rollouts = RolloutBatch.zeros(
                size,
                self._settings.episode_len,
                self._settings.observation_shape,
                dtype,
                self.network.lstm_size,
            )
            self.gradients(parameters, rollouts)
        self._prepared_sizes = sorted(sizes.union(self._prepared_sizes))

    def _size_of_gradients(self, count: int) -> int:
        """Return how many rollouts a batch of ``count`` is padded to."""
        fitting = [size for size in self._prepared_sizes if size >= count]
        return fitting[0] if fitting else padded_size(count)

    def _act_graph(
        self,
        parameters: Sequence[tf.Tensor],
        observations: tf.Tensor,
        recurrent_state: tf.Tensor,
        noise: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        tensors = self._tensors(parameters)
        hidden = layers.features(self.network, tensors, observations)
        if self.network.lstm_size:
            recurrent_state = layers.lstm_step(tensors, hidden, recurrent_state)
            hidden = recurrent_state[1]
        logits, values = layers.heads(tensors, hidden)
        actions = tf.argmax(logits + noise, axis=1)
        log_probabilities = losses.log_probabilities_of(logits, actions)
        return actions, log_probabilities, values, recurrent_state

    def _gradients_graph(
        self,
        parameters: Sequence[tf.Tensor],
        observations: tf.Tensor,
        starts: tf.Tensor,
        actions: tf.Tensor,
        behaviour: tf.Tensor,
        rewards: tf.Tensor,
        terminated: tf.Tensor,
        valid: tf.Tensor,
        recurrent_state: tf.Tensor,
        scale: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        settings = self._settings
        with tf.GradientTape() as tape:
            tape.watch(parameters)  # in the order of the manifest
            tensors = self._tensors(parameters)
            logits, values = self._unroll(tensors, observations, starts, recurrent_state)
            chosen = losses.log_probabilities_of(logits[:-1], actions)
            expected, advantages, weights = self._targets(
                rewards,
                terminated,
                valid,
                tf.stop_gradient(values),
                tf.stop_gradient(chosen) - behaviour,
            )
            if settings.normalize_advantages:
                advantages = targets.normalized(advantages, valid)
            policy_loss = (
                losses.policy_loss(chosen, weights * advantages, valid)
                if settings.policy_clip is None
                else losses.clipped_policy_loss(
                    chosen - behaviour, advantages, valid, settings.policy_clip
                )
            )
            value_loss = losses.value_loss(values[:-1], expected, valid)
            entropy = losses.entropy(logits[:-1], valid)
            loss = scale * (
                policy_loss
                - settings.entropy_beta * entropy
                + settings.value_loss_weight * value_loss
            )
        parts = [tf.reshape(part, [-1]) for part in tape.gradient(loss, parameters)]
        return tf.concat(parts, axis=0), policy_loss, value_loss, entropy

    def _tensors(self, parameters: Sequence[tf.Tensor]) -> Tensors:
        """Return the tensors by name, inside a graph."""
        specs = self.manifest.specs
        if self._splits_in_graph:
            parameters = tf.split(parameters[0], [spec.size for spec in specs])
        return {
            spec.name: tf.reshape(part, spec.shape)
            for spec, part in zip(specs, parameters, strict=True)
        }

    def _targets(
        self,
        rewards: tf.Tensor,
        terminated: tf.Tensor,
        valid: tf.Tensor,
        values: tf.Tensor,
        log_ratios: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Return value targets, advantages, and the weights of these in the policy loss."""
        settings = self._settings
        if settings.vtrace is None:
            returns, advantages = targets.n_step_targets(
                rewards,
                terminated,
                valid,
                values,
                settings.rewards_gamma,
                settings.trace_decay,
            )
            return returns, advantages, tf.ones_like(advantages)
        return targets.vtrace_targets(
            rewards,
            terminated,
            valid,
            values,
            log_ratios,
            settings.rewards_gamma,
            settings.trace_decay,
            clip_rho=settings.vtrace.clip_rho,
            clip_c=settings.vtrace.clip_c,
        )

    def _unroll(
        self,
        parameters: Sequence[tf.Tensor],
        observations: tf.Tensor,
        starts: tf.Tensor,
        recurrent_state: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return logits [T + 1, K, A] and values [T + 1, K] of observations [T + 1, K, ...]."""
        rows, count = observations.shape[:2]
        flat = tf.reshape(observations, [rows * count, *observations.shape[2:]])
        hidden = layers.features(self.network, parameters, flat)
        if self.network.lstm_size:
            outputs = []
            for row in tf.split(hidden, rows):
                continues = 1.0 - starts[len(outputs)][:, tf.newaxis]
                recurrent_state = layers.lstm_step(parameters, row, recurrent_state * continues)
                outputs.append(recurrent_state[1])
            hidden = tf.concat(outputs, axis=0)
        logits, values = layers.heads(parameters, hidden)
        return tf.reshape(logits, [rows, count, -1]), tf.reshape(values, [rows, count])


def padded_size(count: int) -> int:
    """Return the smallest power of two that holds ``count`` rows."""
    return 1 << (count - 1).bit_length()
