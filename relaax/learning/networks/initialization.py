"""Initial values of the parameters."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.networks.manifest import ParameterManifest, TensorSpec

#: What ReLU takes away is given back: He et al. 2015 (https://arxiv.org/abs/1502.01852).
_RELU_GAIN = np.sqrt(2.0)

#: By the beginning of a layer's name; 1 for all others. Small logits make a policy that begins near
#: the uniform one: Andrychowicz et al. 2021 (https://arxiv.org/abs/2006.05990), section 3.2.
_GAINS = {"conv": _RELU_GAIN, "dense": _RELU_GAIN, "policy": 0.01}


def uniform(spec: TensorSpec, generator: np.random.Generator) -> FloatVector:
    """Return values within +-1/sqrt(fan_in), as in the Torch code of Mnih et al. 2016."""
    values: npt.NDArray[np.float64] = generator.uniform(-1, 1, spec.shape) / np.sqrt(spec.fan_in)
    return values.astype(np.float32)


def orthogonal(spec: TensorSpec, generator: np.random.Generator) -> FloatVector:
    """Return a kernel with orthogonal columns (or rows, if these are fewer), or a bias of zeros.

    Saxe et al. 2014 (https://arxiv.org/abs/1312.6120). The last axis of a kernel is its units; all
    columns have the length that the layer's activation asks for.
    """
    if spec.name.endswith("/bias"):
        return np.zeros(spec.shape, np.float32)
    columns = spec.shape[-1]
    rows = spec.size // columns
    longer, shorter = max(rows, columns), min(rows, columns)
    basis, triangle = np.linalg.qr(generator.normal(size=(longer, shorter)))
    basis *= np.sign(np.diag(triangle))  # otherwise not all directions are equally probable
    kernel = basis if rows >= columns else basis.T
    gain = next((gain for layer, gain in _GAINS.items() if spec.name.startswith(layer)), 1.0)
    return (gain * kernel).reshape(spec.shape).astype(np.float32)


INITIALIZATIONS: dict[str, Callable[[TensorSpec, np.random.Generator], FloatVector]] = {
    "uniform": uniform,
    "orthogonal": orthogonal,
}


def initial_parameters(
    manifest: ParameterManifest, initialization: str, seed: int | None
) -> FloatVector:
    """Return a flat vector [size]: each tensor as ``initialization`` draws it."""
    generator = np.random.default_rng(seed)
    draw = INITIALIZATIONS[initialization]
    return manifest.pack({spec.name: draw(spec, generator) for spec in manifest.specs})
