"""What the parameter store asks of an optimiser."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector


def linear_anneal(initial: float, global_t: int, max_global_step: float) -> float:
    """Return the rate at ``global_t``: ``initial`` at step 0, zero from ``max_global_step`` on.

    Mnih et al. 2016, section 5.1.
    """
    return initial * max(0.0, 1.0 - global_t / max_global_step)


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


#: What an optimiser remembers, by the names that checkpoints give it.
Slots = Mapping[str, npt.NDArray[Any]]


class Optimizer(Protocol):
    """Moves a flat vector, and remembers what it needs for the next step."""

    def slots(self) -> Slots:
        """Return what it remembers: vectors float32 [size], and counts int64 [1].

        The arrays are its own: a restored training writes into them. Each name is the optimiser's,
        a slash and the slot's: ``adam/mean``. So a checkpoint tells which optimiser it is of.
        """

    def part(self, begin: int, end: int, size: int) -> "Optimizer":
        """Return one of the same kind that remembers nothing, for the entries [begin, end).

        ``size`` is that of the whole vector. ValueError for a part that cannot be moved alone.
        """

    def apply(self, parameters: FloatVector, gradient: FloatVector, learning_rate: float) -> None:
        """Take one step down ``gradient`` [size], changing ``parameters`` [size] in place."""
