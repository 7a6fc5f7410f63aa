"""The game whose moves are versions of policies: its payoffs, and how its players mix them.

Policy-space response oracles: Lanctot et al. 2017, "A Unified Game-Theoretic Approach to Multiagent
Reinforcement Learning", arXiv:1711.00832. Payoffs are those of the first player, whose versions are
the rows; the second one's are the same with the other sign.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError

FloatArray: TypeAlias = npt.NDArray[np.float64]


def exploitability(payoffs: FloatArray, row: FloatArray, column: FloatArray) -> float:
    """Return the mean gain of a player that answers best to the other one's mixture; 0 or more.

    payoffs: [R, C]; row, column: probabilities [R] and [C]. It is half of NashConv, equation 1 in
    Lanctot et al.
    """
    return float((payoffs @ column).max() - (row @ payoffs).min()) / 2


def nash(payoffs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return an equilibrium of a zero-sum game: probabilities [R] and [C] of payoffs [R, C].

    A player's linear programme: the largest value that its mixture has against each answer (von
    Neumann 1928). ConfigurationError without scipy.
    """
    return _safest(payoffs), _safest(-payoffs.T)


def uniform(payoffs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the same probability for each move: probabilities [R] and [C] of payoffs [R, C]."""
    rows, columns = payoffs.shape
    return np.full(rows, 1 / rows), np.full(columns, 1 / columns)


#: By ``meta_solver``.
SOLVERS: Mapping[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "nash": nash,
    "uniform": uniform,
}


def _safest(payoffs: FloatArray) -> FloatArray:
    """Return the mixture of rows whose smallest payoff against a column is the largest."""
    try:
        from scipy.optimize import linprog  # of an extra: only where it is asked for
    except ImportError:
        raise ConfigurationError(
            "the meta_solver nash needs scipy, which the extra has: pip install 'relaax[psro]'"
        ) from None
    rows, columns = payoffs.shape
    solved = linprog(
        c=[*np.zeros(rows), -1.0],
        A_ub=np.hstack([-payoffs.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[*np.ones(rows), 0.0]],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * rows + [(None, None)],
    )
    found = np.clip(solved.x[:-1], 0.0, None)
    return np.asarray(found / found.sum(), np.float64)
