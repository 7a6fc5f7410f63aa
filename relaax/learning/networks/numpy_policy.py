"""Choosing actions with a network of dense layers, in numpy.

They are small networks: calling a TensorFlow graph takes several times longer than they do.
``benchmarks/inference.py`` compares the two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.base import ActionHead, Distribution, Maskable
from relaax.learning.model import Choice
from relaax.learning.networks.description import POLICY, Head, NamedLayers, Network
from relaax.learning.networks.layers import Dense, LayerNorm, Reshape, SharedDense
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.rollouts.columns import LOG_PROBABILITY, NOISE
from relaax.observations import UNNAMED, Observations, Shape

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
Arrays = Mapping[str, FloatArray]

#: A layer, as a function of the parameters and of its inputs, which it leaves as they are.
Step: TypeAlias = Callable[[Arrays, FloatArray], FloatArray]


class NumpyPolicy:
    """A network without convolutions and recurrent layers, as a pure function that chooses.

    ``distribution`` takes what ``heads`` put out, joined. ``extras`` name what is to be recorded of
    each choice: see ``Columns.of``; only a ``Distribution`` has likelihoods. ``action_mask`` names
    the observation that says which actions are allowed, if there is one.
    """

    def __init__(
        self,
        network: Network,
        distribution: ActionHead,
        extras: Iterable[str] = (LOG_PROBABILITY,),
        action_mask: str | None = None,
        heads: Sequence[str] = (POLICY,),
    ) -> None:
        self._extras = tuple(extras)
        acting = [network.head(name) for name in heads]
        recorded = [head for head in network.heads if head.name in self._extras]
        encoders = {
            name: _steps(network.encoder_layers[name], len(network.encoders[name].shape) == 1)
            for name in network.seen_by([*acting, *recorded])
        }
        #: Of one observation without a name they are steps as all others.
        alone = [] if network.is_named else encoders.pop(UNNAMED)
        self._encoders = encoders
        self._shared = network.shared
        self._steps: list[Step] = [*alone, *_steps(network.trunk)]
        #: The steps of each head, and the observations that it sees beside the shared ones.
        self._heads = [(_head_steps(head), network.beside(head)) for head in acting]
        self._recorded = {h.name: (_head_steps(h), network.beside(h)) for h in recorded}
        if len(acting) == 1 and not recorded and not network.beside(acting[0]):
            self._steps += self._heads.pop()[0]
        self._distribution = distribution
        self._mask = action_mask

    def batch_size(self, count: int) -> int:
        """Return ``count``: batches are not padded."""
        return count

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """Choose actions for ``observations`` [B, F], or such arrays by name.

        Bytes are scaled to [0, 1].
        """
        arrays = parameters.arrays
        encoded: Arrays = {}
        if isinstance(observations, dict):
            encoded = self._encoded(arrays, observations)
            hidden = _joined([encoded[name] for name in self._shared], len(noise))
        else:
            hidden = _scaled(observations)
        for step in self._steps:
            hidden = step(arrays, hidden)
        outputs, distribution = hidden, self._distribution
        if self._heads:
            outputs = _joined([_of_head(arrays, hidden, encoded, *head) for head in self._heads])
        width = outputs.shape[1]
        if self._mask is not None and isinstance(observations, dict):
            maskable = cast(Maskable, distribution)
            outputs = maskable.masked(outputs, observations[self._mask])
        actions, extras = distribution.choose(outputs, noise), {}
        for name in self._extras:
            if name == LOG_PROBABILITY:
                likely = cast(Distribution, distribution)
                extras[name] = likely.log_likelihood(outputs, actions)
            elif name in self._recorded:
                extras[name] = _of_head(arrays, hidden, encoded, *self._recorded[name])
            else:
                extras[name] = noise if name == NOISE else outputs[:, :width]
        return Choice(actions, extras, recurrent_state)

    def _encoded(self, arrays: Arrays, observations: Mapping[str, Array]) -> Arrays:
        """Return the encoders' outputs, float32 [B, F] by the observations' names."""
        return {
            name: _after(steps, arrays, _scaled(observations[name]))
            for name, steps in self._encoders.items()
        }


def _scaled(observations: Array) -> FloatArray:
    if observations.dtype != np.uint8:
        return observations
    scaled: FloatArray = np.divide(observations, 255, dtype=np.float32)
    return scaled


def _steps(layers: NamedLayers, is_flat: bool = True) -> Sequence[Step]:
    """Return layers as functions, one after another; an image is flattened where it has to be."""
    steps: list[Step] = []
    for name, layer in layers:
        if isinstance(layer, Dense | SharedDense) and not is_flat:
            steps.append(_flatten)
            is_flat = True
        if isinstance(layer, Dense):
            steps.append(_dense_step(name, layer.activation))
        elif isinstance(layer, SharedDense):
            steps.append(_shared_dense_step(name, layer))
        elif isinstance(layer, LayerNorm):
            steps.append(_norm_step(name, layer.activation))
        elif isinstance(layer, Reshape):
            steps.append(partial(_reshape, layer.shape))
            is_flat = len(layer.shape) == 1
        else:
            raise ValueError(f"numpy has no {layer.kind} layer here")
    return steps if is_flat else [*steps, _flatten]


def _reshape(shape: Shape, _: Arrays, hidden: FloatArray) -> FloatArray:
    return hidden.reshape(len(hidden), *shape)


def _flatten(_: Arrays, hidden: FloatArray) -> FloatArray:
    return hidden.reshape(len(hidden), -1)


def _dense_step(name: str, activation: str) -> Step:
    kernel, bias, activate = f"{name}/kernel", f"{name}/bias", ACTIVATIONS[activation]

    def step(arrays: Arrays, hidden: FloatArray) -> FloatArray:
        outputs: FloatArray = hidden @ arrays[kernel]
        outputs += arrays[bias]
        return outputs if activate is None else activate(outputs)

    return step


def _shared_dense_step(name: str, layer: SharedDense) -> Step:
    dense, bias = _dense_step(name, layer.activation), f"{name}/bias"
    parts, units = layer.parts, layer.units

    def step(arrays: Arrays, hidden: FloatArray) -> FloatArray:
        count = len(hidden)
        if layer.bias == "own":  # the rows of a batch differ by their bias, too
            arrays = {**arrays, bias: np.tile(arrays[bias], (count, 1))}
        rows = hidden.reshape(count * parts, hidden.shape[1] // parts)
        return dense(arrays, rows).reshape(count, parts * units)

    return step


def _norm_step(name: str, activation: str) -> Step:
    scale, offset, activate = f"{name}/scale", f"{name}/offset", ACTIVATIONS[activation]

    def step(arrays: Arrays, hidden: FloatArray) -> FloatArray:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        centred /= np.sqrt(variance + np.float32(LayerNorm.EPSILON))
        centred *= arrays[scale]
        centred += arrays[offset]
        return centred if activate is None else activate(centred)

    return step


def _after(steps: Sequence[Step], arrays: Arrays, hidden: FloatArray) -> FloatArray:
    for step in steps:
        hidden = step(arrays, hidden)
    return hidden


def _joined(parts: Sequence[FloatArray], count: int = 0) -> FloatArray:
    """Return arrays [B, F] side by side; without any, [count, 0]."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.zeros((count, 0), np.float32)


def _of_head(
    arrays: Arrays,
    hidden: FloatArray,
    encoded: Arrays,
    steps: Sequence[Step],
    beside: Sequence[str],
) -> FloatArray:
    """Return the outputs [B, N] of a head that sees the observations ``beside`` the shared ones."""
    return _after(steps, arrays, _joined([hidden, *(encoded[name] for name in beside)]))


def _head_steps(head: Head) -> list[Step]:
    steps = [*_steps(head.named_layers)]
    if head.units and head.is_linear:
        steps.append(_dense_step(head.name, "linear"))
    return [*steps, _free_step(head)] if head.free_units else steps


def _free_step(head: Head) -> Step:
    name, units = f"{head.name}/free", head.units

    def step(arrays: Arrays, hidden: FloatArray) -> FloatArray:
        outputs = np.empty((len(hidden), head.outputs), np.float32)
        if units:
            outputs[:, :units] = hidden
        outputs[:, units:] = arrays[name]
        return outputs

    return step


# Activations of an array that nothing else needs; it may be changed.


def _relu(x: FloatArray) -> FloatArray:
    return np.maximum(x, 0, out=x)


def _tanh(x: FloatArray) -> FloatArray:
    return np.tanh(x, out=x)


def _elu(x: FloatArray) -> FloatArray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _sigmoid(x: FloatArray) -> FloatArray:
    # By the hyperbolic tangent, which overflows nowhere.
    sigmoid: FloatArray = np.float32(0.5) * (1 + np.tanh(x * np.float32(0.5)))
    return sigmoid


def _silu(x: FloatArray) -> FloatArray:
    return x * _sigmoid(x)


#: By the names that layers have for them; None leaves all as it is.
ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray] | None] = {
    "linear": None,
    "relu": _relu,
    "tanh": _tanh,
    "elu": _elu,
    "silu": _silu,
    "swish": _silu,
    "sigmoid": _sigmoid,
}
