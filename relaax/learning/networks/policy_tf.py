"""Choosing actions with any network, as a TensorFlow graph."""

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from relaax.learning.arrays import padded_batch, padded_size, zero_padded
from relaax.learning.distributions.base import (
    ActionHead,
    GraphActionHead,
    GraphDistribution,
    Maskable,
)
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks import layers_tf
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.description import POLICY, Network
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.rollouts.columns import DISTRIBUTION, LOG_PROBABILITY, NOISE
from relaax.observations import Observations, mapped

FloatArray = npt.NDArray[np.float32]


class GraphPolicy:
    """A network as a pure function that chooses.

    Batches are padded to powers of two, so that few graphs are traced and compiled. All else is as
    in ``NumpyPolicy``.
    """

    def __init__(
        self,
        network: Network,
        tensors: ParameterTensors,
        distribution: GraphActionHead,
        extras: Iterable[str] = (LOG_PROBABILITY,),
        action_mask: str | None = None,
        heads: Sequence[str] = (POLICY,),
    ) -> None:
        self._extras = tuple(extras)
        self._heads = [network.head(name) for name in heads]
        self._network = network
        self._mask = action_mask
        self._tensors = tensors
        self._distribution = distribution
        # XLA makes small dense layers faster and convolutions slower.
        self._graph = CompiledFunction(self.chosen, jit_compile=not network.has_convolutions)

    def batch_size(self, count: int) -> int:
        """Return the next power of two."""
        return padded_size(count)

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """Choose actions for ``observations`` [B, ...], or such arrays by name."""
        count = len(noise)
        size = self.batch_size(count)
        actions, extras, state = self._graph(
            parameters.tensors,
            mapped(lambda part: padded_batch(part, size), observations),
            zero_padded(recurrent_state, size, axis=1),
            padded_batch(noise, size),
        )
        return Choice(
            actions.numpy()[:count],
            {name: extra.numpy()[:count] for name, extra in extras.items()},
            state.numpy()[:, :count],
        )

    def chosen(
        self,
        parts: Sequence[tf.Tensor],
        observations: layers_tf.ObservationTensors,
        recurrent_state: tf.Tensor,
        noise: tf.Tensor,
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor], tf.Tensor]:
        """Return actions, the extras of these and the recurrent state behind them, in a graph."""
        parameters = self._tensors.by_name(parts)
        network = self._network
        recorded = [head for head in network.heads if head.name in self._extras]
        heads = [*self._heads, *recorded]
        encoded = layers_tf.encoded(network, parameters, observations, heads)
        hidden = layers_tf.features(network, parameters, encoded)
        if network.lstm_size:
            recurrent_state = layers_tf.lstm_step(parameters, hidden, recurrent_state)
            hidden = recurrent_state[1]
        outputs = tf.concat(
            [
                layers_tf.head_outputs(network, head, parameters, hidden, encoded)
                for head in self._heads
            ],
            axis=-1,
        )
        distribution, width = self._distribution, outputs.shape[-1]
        if self._mask is not None:
            maskable = cast(Maskable, distribution)
            outputs = maskable.masked(outputs, observations[self._mask])
        actions = distribution.choose(outputs, noise)
        extras = {
            head.name: layers_tf.head_outputs(network, head, parameters, hidden, encoded)
            for head in recorded
        }
        if LOG_PROBABILITY in self._extras:
            likely = cast(GraphDistribution, distribution)
            extras[LOG_PROBABILITY] = likely.log_likelihood(outputs, actions)
        if DISTRIBUTION in self._extras:
            extras[DISTRIBUTION] = outputs[:, :width]
        if NOISE in self._extras:
            extras[NOISE] = noise
        return actions, extras, recurrent_state


def policy_of(
    network: Network,
    tensors: ParameterTensors,
    distribution: ActionHead,
    graph_distribution: GraphActionHead,
    extras: Iterable[str] = (LOG_PROBABILITY,),
    action_mask: str | None = None,
    heads: Sequence[str] = (POLICY,),
) -> PolicyModel:
    """Return the fastest model: a graph for convolutions and recurrent layers, else numpy.

    ``extras`` name what is to be recorded of each choice: see ``Columns.of``. ``action_mask`` names
    the observation that says which actions are allowed. Actions are made of the outputs of
    ``heads``, joined.
    """
    if network.has_convolutions or network.lstm_size:
        return GraphPolicy(network, tensors, graph_distribution, extras, action_mask, heads)
    return NumpyPolicy(network, distribution, extras, action_mask, heads)
