"""Passes over the steps of a batch: values, advantages and gradients, as TensorFlow graphs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector
from relaax.learning.arrays import zero_padded
from relaax.learning.distributions import GraphDistribution, Maskable
from relaax.learning.model import BatchGradient
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.layers_tf import ObservationTensors, unroll
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.on_policy.learner import Method
from relaax.learning.on_policy.networks import VALUE
from relaax.learning.on_policy.sequences import Experience
from relaax.learning.rollouts import RolloutBatch
from relaax.observations import mapped

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
Terms = dict[str, tf.Tensor]
Outputs = dict[str, Any]

#: The name of what values should be, among the targets of a surrogate.
RETURNS = "returns"


class Surrogate(Protocol):
    """The loss of a method over the steps of rollouts, inside a graph."""

    @property
    def distribution(self) -> GraphDistribution:
        """The policy's."""

    def targets(
        self, rollouts: RolloutBatch, outputs: Mapping[str, FloatArray]
    ) -> Mapping[str, tf.Tensor]:
        """Return numbers [T, K] of rollouts by name, those that values should be as ``RETURNS``.

        outputs: of each head before the first pass, float32 [T + 1, K, N].
        """

    def loss(
        self, outputs: Mapping[str, tf.Tensor], batch: Experience, knobs: tf.Tensor
    ) -> tuple[tf.Tensor, Terms]:
        """Return the mean loss of a minibatch, and means by name, ``kl`` among them.

        outputs: of each head, [T, K, N]. The policy's, and those before the first pass, are without
        masked actions.
        """


class Knobs(Protocol):
    """Numbers that a method adapts after each batch."""

    def vector(self) -> FloatVector:
        """Return the numbers that the loss is given."""

    def adapt(self, kl: float) -> None:
        """Adapt to a batch that has moved the policy by ``kl``."""

    def state(self) -> Mapping[str, Array]:
        """Return arrays for a checkpoint by name."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""


class SurrogatePasses(Method[Experience]):
    """Passes in minibatches of steps, or of whole rollouts for a recurrent network.

    ``sequences``: how many of these are evaluated at once, and are in a minibatch. ``action_mask``
    names the observation that says which actions are allowed. No more updates are made of a batch
    that has moved the policy by more than ``kl_stop``, at a minibatch or at the end of a pass.
    """

    def __init__(
        self,
        network: Network,
        tensors: ParameterTensors,
        surrogate: Surrogate,
        knobs: Knobs,
        sequences: int,
        action_mask: str | None = None,
        kl_stop: float | None = None,
    ) -> None:
        self._network = network
        self._tensors = tensors
        self._surrogate = surrogate
        self._knobs = knobs
        self.sequences = sequences
        self._mask = action_mask
        self._kl_stop = kl_stop
        #: Of the pass that has just ended, where it was measured.
        self._kl: float | None = None
        is_dense = not network.has_convolutions and not network.lstm_size
        # XLA takes seconds, which only pays for a graph that each update computes.
        self._outputs_graph = CompiledFunction(self._outputs, jit_compile=False)
        self._gradient_graph = CompiledFunction(self._gradient, jit_compile=is_dense)
        self._divergence_graph = CompiledFunction(self._divergence, jit_compile=False)

    def begin(self, parameters: NetworkParameters, rollouts: RolloutBatch) -> Experience:
        """Return the steps of rollouts, with targets and advantages by ``parameters``."""
        outputs = self.evaluated(parameters, rollouts)
        targets = self._surrogate.targets(rollouts, outputs)
        experience = Experience(
            observations=mapped(lambda part: part[:-1], rollouts.observations),
            starts=rollouts.starts[:-1],
            recurrent_state=rollouts.recurrent_state,
            actions=rollouts.actions,
            extras=dict(rollouts.extras),
            valid=rollouts.valid,
            on_policy=rollouts.on_policy,
            targets={name: target.numpy() for name, target in targets.items()},
            before=mapped(lambda part: part[:-1], outputs),
        )
        return experience if self._network.lstm_size else experience.as_steps()

    def minibatches(self, batch: Experience, random: np.random.Generator) -> Iterator[Experience]:
        """Yield all sequences at random."""
        self._kl = None
        return batch.minibatches(self.sequences, random)

    def gradient(self, parameters: NetworkParameters, minibatch: Experience) -> BatchGradient:
        """Return the gradient of the loss of a minibatch, and means over its steps."""
        vector, terms = self._gradient_graph(
            parameters.tensors, self._knobs.vector(), *minibatch.columns()
        )
        return BatchGradient(vector.numpy(), {name: float(term) for name, term in terms.items()})

    def is_enough(self, terms: Mapping[str, float]) -> bool:
        """See Method."""
        return self._kl_stop is not None and terms["kl"] > self._kl_stop

    def end_pass(self, parameters: NetworkParameters, batch: Experience) -> bool:
        """See Method."""
        if self._kl_stop is None:
            return False
        self._kl = self.divergence(parameters, batch)
        return self._kl > self._kl_stop

    def finish(self, parameters: NetworkParameters, batch: Experience) -> Mapping[str, float]:
        """Adapt; return how far all updates together have moved the policy, among others.

        The terms of a minibatch are those before its own update.
        """
        kl = self.divergence(parameters, batch) if self._kl is None else self._kl
        self._knobs.adapt(kl)
        return {"kl": kl, "explained variance": explained_variance(batch)}

    def state(self) -> Mapping[str, Array]:
        """Return the adapted numbers."""
        return self._knobs.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """See Method."""
        self._knobs.restore(state)

    def divergence(self, parameters: NetworkParameters, batch: Experience) -> float:
        """Return the KL divergence of ``parameters`` from the policy before the first pass.

        The mean over all steps of the batch.
        """
        total = sum(
            float(self._divergence_graph(parameters.tensors, *piece.columns()))
            for piece in batch.pieces(self.sequences)
        )
        return total / max(float(batch.valid.sum()), 1.0)

    def evaluated(self, parameters: NetworkParameters, rollouts: RolloutBatch) -> Outputs:
        """Return the outputs of each head, [T + 1, K, N]."""
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
        return {
            name: np.concatenate([piece[name] for piece in pieces], axis=1).reshape(rows, count, -1)
            for name in pieces[0]
        }

    def _evaluated_piece(
        self,
        parameters: NetworkParameters,
        observations: Any,
        starts: Array,
        state: Array,
        begin: int,
    ) -> Outputs:
        size = self.sequences
        some = slice(begin, begin + size)

        def piece(part: Array) -> Array:
            return zero_padded(part[:, some], size, axis=1)

        outputs = self._outputs_graph(
            parameters.tensors, mapped(piece, observations), piece(starts), piece(state)
        )
        count = starts[:, some].shape[1]
        return {name: part.numpy()[:, :count] for name, part in outputs.items()}

    def _outputs(
        self,
        parts: Sequence[tf.Tensor],
        observations: ObservationTensors,
        starts: tf.Tensor,
        state: tf.Tensor,
        valid: tf.Tensor | None = None,
    ) -> Outputs:
        by_name = self._tensors.by_name(parts)
        return unroll(self._network, by_name, observations, starts, state, valid)

    def _gradient(
        self, parts: Sequence[tf.Tensor], knobs: tf.Tensor, *columns: Any
    ) -> tuple[tf.Tensor, Terms]:
        batch = self._masked(Experience(*columns))
        with tf.GradientTape() as tape:
            tape.watch(parts)  # in the order of the manifest
            loss, terms = self._surrogate.loss(self._outputs_of(parts, batch), batch, knobs)
        slopes = tape.gradient(loss, parts, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(slope, [-1]) for slope in slopes], axis=0), terms

    def _divergence(self, parts: Sequence[tf.Tensor], *columns: Any) -> tf.Tensor:
        """Return the sum of the KL divergences over the valid steps of some sequences."""
        batch = self._masked(Experience(*columns))
        policy = self._outputs_of(parts, batch)[POLICY]
        kl = self._surrogate.distribution.kl(batch.before[POLICY], policy)
        return tf.reduce_sum(batch.valid * kl)

    def _outputs_of(self, parts: Sequence[tf.Tensor], batch: Experience) -> Outputs:
        """Return the outputs of each head for a minibatch, without masked actions."""
        state = batch.recurrent_state
        outputs = self._outputs(parts, batch.observations, batch.starts, state, batch.valid)
        return {**outputs, POLICY: self._allowed(outputs[POLICY], batch)}

    def _masked(self, batch: Experience) -> Experience:
        before = {**batch.before, POLICY: self._allowed(batch.before[POLICY], batch)}
        return replace(batch, before=before)

    def _allowed(self, policy: tf.Tensor, batch: Experience) -> tf.Tensor:
        """Return the policy without masked actions; rows that are not valid allow all."""
        if self._mask is None:
            return policy
        observations = cast(Mapping[str, tf.Tensor], batch.observations)
        is_no_step = tf.cast(batch.valid[..., tf.newaxis] == 0, tf.uint8)
        allowed = tf.maximum(observations[self._mask], is_no_step)
        return cast(Maskable, self._surrogate.distribution).masked(policy, allowed)


def explained_variance(experience: Experience) -> float:
    """Return which part of the variance of the returns the values explain: 1 at best."""
    valid = experience.valid > 0
    returns, values = experience.targets[RETURNS][valid], experience.before[VALUE][valid][:, 0]
    variance = float(returns.var())
    return 1 - float((returns - values).var()) / variance if variance else 0.0
