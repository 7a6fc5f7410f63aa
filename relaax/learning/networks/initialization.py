"""Initial values of the parameters."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.networks.manifest import ParameterManifest, TensorSpec


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
    return (spec.gain * kernel).reshape(spec.shape).astype(np.float32)


INITIALIZATIONS: dict[str, Callable[[TensorSpec, np.random.Generator], FloatVector]] = {
    "uniform": uniform,
    "orthogonal": orthogonal,
}


def initial_parameters(
    manifest: ParameterManifest, initialization: str, seed: int | Sequence[int] | None
) -> FloatVector:
    """Return a flat vector [size]: each tensor as ``initialization`` draws it, or at its start."""
    generator = np.random.default_rng(seed)
    draw = INITIALIZATIONS[initialization]
    return manifest.pack(
        {
            spec.name: draw(spec, generator)
            if spec.start is None
            else np.full(spec.shape, spec.start, np.float32)
            for spec in manifest.specs
        }
    )
