"""Clipping by the global norm, as plain numpy."""

import numpy as np

from relaax.algorithm_base import FloatVector


def clip_by_global_norm(gradient: FloatVector, limit: float | None) -> tuple[FloatVector, float]:
    """Return the gradient [size], scaled down to norm ``limit`` where it is longer, and its norm.

    Pascanu et al. 2013 (https://arxiv.org/abs/1211.5063), algorithm 1. The norm is the one before;
    it is not finite where an entry is not.
    """
    with np.errstate(over="ignore"):
        norm = float(np.sqrt(np.dot(gradient, gradient)))
    if not np.isfinite(norm):  # the squares of huge entries have no place in float32
        norm = float(np.linalg.norm(gradient.astype(np.float64)))
    if limit is None or norm <= limit:
        return gradient, norm
    return gradient * np.float32(limit / norm), norm
