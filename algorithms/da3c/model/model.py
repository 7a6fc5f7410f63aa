"""The model: choosing actions and computing gradients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector

from ..network import Network
from . import layers, losses
from .compiled import CompiledFunction

FloatArray = npt.NDArray[np.float32]
Parameters = Mapping[str, tf.Tensor]


@dataclass(frozen=True)
class Decision:
    """What the network says to a batch of observations."""

    #: int64 [B]
    actions: npt.NDArray[np.int64]
    #: float32 [B]
    values: FloatArray
    #: float32 [2, B, H], for the next step; H is 0 without a recurrent layer.
    recurrent_state: FloatArray


@dataclass(frozen=True)
class RolloutBatch:
    """T consecutive steps of one environment, complete with their returns."""

    #: uint8 or float32 [T, ...]
    observations: npt.NDArray[Any]
    #: int32 [T]
    actions: npt.NDArray[np.int32]
    #: float32 [T]
    returns: FloatArray
    #: float32 [T]: 0 where an episode starts, so that it forgets the one before, else 1.
    continues: FloatArray
    #: float32 [2, 1, H], before the first step.
    recurrent_state: FloatArray


@dataclass(frozen=True)
class Gradients:
    """What one rollout teaches."""

    #: float32 [size], in the order of the manifest.
    vector: FloatVector
    #: Sums over the rollout's steps.
    policy_loss: float
    value_loss: float
    entropy: float


class Model:
    """Pure functions of parameters and a batch; it knows nothing of workers or servers."""

    def __init__(self, network: Network, entropy_beta: float, value_loss_weight: float) -> None:
        self.network = network
        self.manifest = network.manifest()
        self._entropy_beta = entropy_beta
        self._value_loss_weight = value_loss_weight
        # XLA makes small dense layers faster and convolutions slower; a recurrent layer unrolled
        # over a rollout takes it many seconds to compile, and saves half a millisecond a rollout.
        is_dense = not network.convolutions
        self._act = CompiledFunction(self._act_graph, jit_compile=is_dense)
        self._gradients = CompiledFunction(
            self._gradients_graph, jit_compile=is_dense and not network.lstm_size
        )

    def unpack(self, vector: FloatVector) -> Parameters:
        """Return the tensors of a flat vector [size]; do it once for each new version."""
        views = self.manifest.unpack(vector)
        return {name: tf.convert_to_tensor(view) for name, view in views.items()}

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
        actions, values, state = self._act(parameters, observations, recurrent_state, noise)
        return Decision(actions.numpy(), values.numpy(), state.numpy())

    def gradients(self, parameters: Parameters, rollout: RolloutBatch) -> Gradients:
        """Return the gradient of the loss of one rollout.

        loss = policy loss - entropy_beta * entropy + value_loss_weight * value loss.
        """
        vector, policy_loss, value_loss, entropy = self._gradients(
            parameters,
            rollout.observations,
            rollout.actions,
            rollout.returns,
            rollout.continues,
            rollout.recurrent_state,
        )
        return Gradients(vector.numpy(), float(policy_loss), float(value_loss), float(entropy))

    def _act_graph(
        self,
        parameters: Parameters,
        observations: tf.Tensor,
        recurrent_state: tf.Tensor,
        noise: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        hidden = layers.features(self.network, parameters, observations)
        if self.network.lstm_size:
            recurrent_state = layers.lstm_step(parameters, hidden, recurrent_state)
            hidden = recurrent_state[1]
        logits, values = layers.heads(parameters, hidden)
        return tf.argmax(logits + noise, axis=1), values, recurrent_state

    def _gradients_graph(
        self,
        parameters: Parameters,
        observations: tf.Tensor,
        actions: tf.Tensor,
        returns: tf.Tensor,
        continues: tf.Tensor,
        recurrent_state: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            logits, values = self._unroll(parameters, observations, continues, recurrent_state)
            policy_loss = losses.policy_loss(logits, actions, returns - values)
            value_loss = losses.value_loss(values, returns)
            entropy = losses.entropy(logits)
            loss = policy_loss - self._entropy_beta * entropy + self._value_loss_weight * value_loss
        by_name = tape.gradient(loss, parameters)
        ordered = [tf.reshape(by_name[spec.name], [-1]) for spec in self.manifest.specs]
        return tf.concat(ordered, axis=0), policy_loss, value_loss, entropy

    def _unroll(
        self,
        parameters: Parameters,
        observations: tf.Tensor,
        continues: tf.Tensor,
        recurrent_state: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return logits [T, A] and values [T] of consecutive observations [T, ...]."""
        hidden = layers.features(self.network, parameters, observations)
        if self.network.lstm_size:
            outputs = []
            for step in range(observations.shape[0]):
                recurrent_state = recurrent_state * continues[step]
                recurrent_state = layers.lstm_step(
                    parameters, hidden[step : step + 1], recurrent_state
                )
                outputs.append(recurrent_state[1])
            hidden = tf.concat(outputs, axis=0)
        return layers.heads(parameters, hidden)
