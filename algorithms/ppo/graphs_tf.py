"""Values, advantages and gradients of a batch, as TensorFlow graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.learning.arrays import zero_padded
from relaax.learning.distributions import Maskable
from relaax.learning.model import Gradient
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.layers_tf import ObservationTensors, unroll
from relaax.learning.networks.manifest import Parameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.on_policy.networks import VALUE
from relaax.learning.returns_tf import n_step_targets, normalized
from relaax.learning.rollouts import LOG_PROBABILITY, RolloutBatch
from relaax.observations import mapped

from .adaptation import Knobs
from .experience import Experience
from .losses_tf import PpoLoss, Terms

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Returns:
    """How returns are estimated: Schulman et al. 2016 (https://arxiv.org/abs/1506.02438)."""

    discount: float
    trace_decay: float
    #: Whether the advantages of a batch get mean 0 and standard deviation 1.
    normalizes: bool


class PpoGraphs:
    """Pure functions of parameters and steps.

    ``sequences``: how many of them are evaluated at once, and are in a minibatch. They are steps,
    or whole rollouts for a recurrent network. ``action_mask`` names the observation that says which
    actions are allowed.
    """

    def __init__(
        self,
        network: Network,
        tensors: ParameterTensors,
        loss: PpoLoss,
        returns: Returns,
        sequences: int,
        action_mask: str | None = None,
    ) -> None:
        self._network = network
        self._tensors = tensors
        self._loss = loss
        self._returns = returns
        self.sequences = sequences
        self._mask = action_mask
        is_dense = not network.has_convolutions and not network.lstm_size
        # XLA takes seconds, which pays for what is computed in each update alone.
        self._outputs_graph = CompiledFunction(self._outputs, jit_compile=False)
        self._gradient_graph = CompiledFunction(self._gradient, jit_compile=is_dense)
        self._divergence_graph = CompiledFunction(self._divergence, jit_compile=False)

    def experience(self, parameters: Parameters, rollouts: RolloutBatch) -> Experience:
        """Return the steps of rollouts, with returns and advantages by ``parameters``."""
        values, policy = self.evaluated(parameters, rollouts)
        returns, advantages = n_step_targets(
            rollouts.rewards,
            rollouts.terminated,
            rollouts.valid,
            values,
            self._returns.discount,
            self._returns.trace_decay,
        )
        if self._returns.normalizes:
            advantages = normalized(advantages, rollouts.on_policy)
        experience = Experience(
            observations=mapped(lambda part: part[:-1], rollouts.observations),
            starts=rollouts.starts[:-1],
            recurrent_state=rollouts.recurrent_state,
            actions=rollouts.actions,
            log_probabilities=rollouts.extras[LOG_PROBABILITY],
            valid=rollouts.valid,
            on_policy=rollouts.on_policy,
            advantages=advantages.numpy(),
            returns=returns.numpy(),
            values=values[:-1],
            policy=policy[:-1],
        )
        return experience if self._network.lstm_size else experience.as_steps()

    def gradient(self, parameters: Parameters, minibatch: Experience, knobs: Knobs) -> Gradient:
        """Return the gradient of the loss of a minibatch, and means over its steps.

        Among these are ``kl``, the KL divergence of ``parameters`` from the policy before the first
        pass, and ``clipped``, the share of steps whose ratio lies beyond the clip. Policy loss,
        entropy and this share are means over the steps in which the policy's own action was
        executed; ``kl``, which keeps the policy near in every state, is one over all.
        """
        vector, terms = self._gradient_graph(
            parameters.tensors,
            np.array([knobs.clip, knobs.penalty], np.float32),
            *minibatch.columns(),
        )
        return Gradient(vector.numpy(), {name: float(term) for name, term in terms.items()})

    def divergence(self, parameters: Parameters, experience: Experience) -> float:
        """Return the KL divergence of ``parameters`` from the policy before the first pass.

        The mean over all steps of the experience.
        """
        total = sum(
            float(self._divergence_graph(parameters.tensors, *piece.columns()))
            for piece in experience.pieces(self.sequences)
        )
        return total / max(float(experience.valid.sum()), 1.0)

    def evaluated(
        self, parameters: Parameters, rollouts: RolloutBatch
    ) -> tuple[FloatArray, FloatArray]:
        """Return values [T + 1, K] and what the policy's head puts out, [T + 1, K, N]."""
        rows, count = rollouts.starts.shape
        observations, starts, state = (
            rollouts.observations,
            rollouts.starts,
            rollouts.recurrent_state,
        )
        if not self._network.lstm_size:  # any row may be evaluated with any other
            observations = mapped(lambda part: part.reshape(1, -1, *part.shape[2:]), observations)
            starts, state = starts.reshape(1, -1), np.zeros((2, starts.size, 0), np.float32)
        pieces = [
            self._evaluated_piece(parameters, observations, starts, state, begin)
            for begin in range(0, starts.shape[1], self.sequences)
        ]
        values, policy = (np.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
        return values.reshape(rows, count), policy.reshape(rows, count, -1)

    def _evaluated_piece(
        self, parameters: Parameters, observations: Any, starts: Array, state: Array, begin: int
    ) -> tuple[FloatArray, FloatArray]:
        size = self.sequences
        some = slice(begin, begin + size)

        def piece(part: Array) -> Array:
            return zero_padded(part[:, some], size, axis=1)

        values, policy = self._outputs_graph(
            parameters.tensors, mapped(piece, observations), piece(starts), piece(state)
        )
        count = starts[:, some].shape[1]
        return values.numpy()[:, :count], policy.numpy()[:, :count]

    def _outputs(
        self,
        parts: Sequence[tf.Tensor],
        observations: ObservationTensors,
        starts: tf.Tensor,
        state: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        by_name = self._tensors.by_name(parts)
        outputs = unroll(self._network, by_name, observations, starts, state)
        return outputs[VALUE][..., 0], outputs[POLICY]

    def _gradient(
        self, parts: Sequence[tf.Tensor], knobs: tf.Tensor, *columns: Any
    ) -> tuple[tf.Tensor, Terms]:
        batch = Experience(*columns)
        with tf.GradientTape() as tape:
            tape.watch(parts)  # in the order of the manifest
            values, policy = self._outputs(
                parts, batch.observations, batch.starts, batch.recurrent_state
            )
            loss, terms = self._total(values, policy, batch, knobs)
        slopes = tape.gradient(loss, parts, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(slope, [-1]) for slope in slopes], axis=0), terms

    def _divergence(self, parts: Sequence[tf.Tensor], *columns: Any) -> tf.Tensor:
        """Return the sum of the KL divergences over the valid steps of some sequences."""
        batch = Experience(*columns)
        _, policy = self._outputs(parts, batch.observations, batch.starts, batch.recurrent_state)
        policy, before = self._masked(policy, batch), self._masked(batch.policy, batch)
        return tf.reduce_sum(batch.valid * self._loss.distribution.kl(before, policy))

    def _total(
        self, values: tf.Tensor, policy: tf.Tensor, batch: Experience, knobs: tf.Tensor
    ) -> tuple[tf.Tensor, Terms]:
        loss, distribution, valid = self._loss, self._loss.distribution, batch.valid
        policy, before = self._masked(policy, batch), self._masked(batch.policy, batch)
        log_ratios = distribution.log_likelihood(policy, batch.actions) - batch.log_probabilities
        count = tf.maximum(tf.reduce_sum(valid), 1.0)
        own, own_count = batch.on_policy, tf.maximum(tf.reduce_sum(batch.on_policy), 1.0)
        clip, penalty = knobs[0], knobs[1]
        kl = tf.reduce_sum(valid * distribution.kl(before, policy)) / count
        terms = {
            "policy loss": loss.policy_loss(log_ratios, batch.advantages, own, clip) / own_count,
            "value loss": loss.value_loss(values, batch.values, batch.returns, valid) / count,
            "entropy": tf.reduce_sum(own * distribution.entropy(policy)) / own_count,
            "kl": kl,
            "clipped": _share(tf.abs(tf.exp(log_ratios) - 1.0) > clip, own) / own_count,
        }
        total = (
            terms["policy loss"]
            + loss.penalty(kl, penalty)
            + loss.value_loss_weight * terms["value loss"]
            - loss.entropy_beta * terms["entropy"]
        )
        return total, terms

    def _masked(self, policy: tf.Tensor, batch: Experience) -> tf.Tensor:
        """Return the policy without masked actions; rows that are not valid allow all."""
        if self._mask is None:
            return policy
        observations = cast(Mapping[str, tf.Tensor], batch.observations)
        is_no_step = tf.cast(batch.valid[..., tf.newaxis] == 0, tf.uint8)
        allowed = tf.maximum(observations[self._mask], is_no_step)
        return cast(Maskable, self._loss.distribution).masked(policy, allowed)


def _share(is_so: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(valid * tf.cast(is_so, tf.float32))
