"""A policy as one function: preprocessing, filters, network, distribution and memory.

The layers and the distributions are those that act in a training.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import tensorflow as tf

from relaax.learning.described_policy import DescribedPolicy
from relaax.learning.distributions.base import Maskable
from relaax.learning.distributions.graph_tf import graph_head_of
from relaax.learning.filters import Scale
from relaax.learning.filters.z_filter import MOST_DEVIATIONS
from relaax.learning.networks import layers_tf
from relaax.server.export.signature import (
    ACTION,
    LSTM,
    NEXT,
    POLICY,
    START,
    ObservationInput,
    Signature,
)

Tensors: TypeAlias = Mapping[str, tf.Tensor]


class PolicyGraph(tf.Module):  # type: ignore[misc]  # TensorFlow has no types
    """Chooses a policy's most probable actions; its parameters are constants of the graph."""

    def __init__(self, policy: DescribedPolicy, signature: Signature) -> None:
        super().__init__()
        self._policy = policy
        self._signature = signature
        self._head: Any = graph_head_of(policy.distribution)
        specs = [
            tf.TensorSpec([None, *each.shape], each.dtype, each.name) for each in signature.inputs
        ]
        self.call = tf.function(self._call, input_signature=specs, autograph=False)

    def _call(self, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        names = [each.name for each in self._signature.inputs]
        return self.act(dict(zip(names, inputs, strict=True)))

    def act(self, inputs: Tensors) -> dict[str, tf.Tensor]:
        """Return the outputs by name."""
        policy, signature, remembered = self._policy, self._signature, {}
        observations = {}
        for each in signature.observations:
            stacked = self._stacked(each, inputs)
            observations[each.name] = stacked
            if each.history is not None:
                remembered[NEXT + each.history.name] = stacked
        network = policy.network
        parameters = {name: tf.constant(value) for name, value in policy.parameters.items()}
        alone = observations if network.is_named else next(iter(observations.values()))
        acting = [network.head(name) for name in policy.heads]
        encoded = layers_tf.encoded(network, parameters, alone, acting)
        hidden = layers_tf.features(network, parameters, encoded)
        if signature.lstm is not None:
            before = _where_it_goes_on(inputs[START], inputs[LSTM])
            after = layers_tf.lstm_step(parameters, hidden, tf.transpose(before, [1, 0, 2]))
            hidden = after[1]
            remembered[NEXT + LSTM] = tf.transpose(after, [1, 0, 2])
        heads = [
            layers_tf.head_outputs(network, head, parameters, hidden, encoded) for head in acting
        ]
        outputs = heads[0] if len(heads) == 1 else tf.concat(heads, axis=-1)
        width = outputs.shape[-1]
        if signature.mask is not None:
            outputs = cast(Maskable, self._head).masked(outputs, inputs[signature.mask.name])
        actions = self._to_plant(self._head.mode(outputs))
        return {ACTION: actions, POLICY: outputs[..., :width], **remembered}

    def _stacked(self, observation: ObservationInput, inputs: Tensors) -> tf.Tensor:
        """Return an observation, filtered and behind those before it."""
        state = inputs[observation.state.name]
        newest = state[..., tf.newaxis] if observation.needs_axis else state
        scale = self._policy.scales.get(observation.name)
        if scale is not None:
            newest = _filtered(scale, newest)
        if observation.history is None:
            return newest
        width = newest.shape[-1]
        pushed = tf.concat([inputs[observation.history.name][..., width:], newest], axis=-1)
        filled = tf.concat([newest] * observation.length, axis=-1)
        starts = tf.reshape(inputs[START], [-1, *[1] * (len(newest.shape) - 1)])
        return tf.where(starts, filled, pushed)

    def _to_plant(self, actions: tf.Tensor) -> tf.Tensor:
        """Return the plant's actions for a policy's; see ``ActionUnits.to_plant``.

        In float32, which every runtime has: of a middle that is far away, its rest is added first.
        """
        units = self._policy.units
        if units is None:
            return actions
        middle = units.middle.astype(np.float32)
        rest, half = (units.middle - middle).astype(np.float32), units.half.astype(np.float32)
        converted = middle + (rest + half * actions)
        return tf.minimum(tf.maximum(converted, units.lowest), units.highest)


def _where_it_goes_on(starts: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """Return a state [B, 2, H], zeros where an episode starts [B]."""
    return tf.where(starts[:, tf.newaxis, tf.newaxis], tf.zeros_like(state), state)


def _filtered(scale: Scale, rows: tf.Tensor) -> tf.Tensor:
    """Return rows [B, D] in deviations from their mean, float32, as ``ZFilter`` does."""
    near = tf.minimum(tf.maximum(tf.cast(rows, tf.float64), scale.lowest), scale.highest)
    scaled = (near - scale.center) * scale.factor
    most = tf.constant(MOST_DEVIATIONS, tf.float64)
    return tf.cast(tf.minimum(tf.maximum(scaled, -most), most), tf.float32)
