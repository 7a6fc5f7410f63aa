"""What a manager of PSRO knows: the population of each player, its payoffs and its mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaax.populations.cells import Pair
from relaax.populations.meta_game import SOLVERS, FloatArray, exploitability


@dataclass
class Solution:
    """The mixtures of a meta-game."""

    mixtures: list[list[float]]
    #: Within the population; see ``meta_game``.
    exploitability: float
    #: Of the first player.
    value: float


@dataclass
class MetaGame:
    """Versions of two policies, and what the first one's have earned against the second one's."""

    #: Of each player: the numbers of its versions, in the order in which they came.
    versions: list[list[int]] = field(default_factory=lambda: [[], []])
    #: By the places of two versions: the returns of the first player.
    returns: dict[Pair, list[float]] = field(default_factory=dict)
    #: One for each population that was solved.
    solutions: list[Solution] = field(default_factory=list)
    #: The newest versions when the oracles began against the present mixtures; None: they have not
    #: begun yet.
    began: list[int] | None = None

    def missing(self) -> list[Pair]:
        """Return the cells that were not played."""
        rows, columns = map(len, self.versions)
        cells = [(row, column) for row in range(rows) for column in range(columns)]
        return [cell for cell in cells if cell not in self.returns]

    def payoffs(self) -> FloatArray:
        """Return the mean return of each cell, all of which were played."""
        rows, columns = map(len, self.versions)
        return np.array(
            [
                [np.mean(self.returns[row, column]) for column in range(columns)]
                for row in range(rows)
            ]
        )

    def solve(self, solver: str) -> Solution:
        """Find the mixtures of the present population."""
        payoffs = self.payoffs()
        row, column = SOLVERS[solver](payoffs)
        gain, value = exploitability(payoffs, row, column), float(row @ payoffs @ column)
        self.solutions.append(Solution([row.tolist(), column.tolist()], gain, value))
        return self.solutions[-1]

    def written(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "versions": self.versions,
            "returns": [[*cell, *values] for cell, values in sorted(self.returns.items())],
            "solutions": [vars(each) for each in self.solutions],
            "began": self.began,
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> "MetaGame":
        """Return what ``written`` has written; ValueError, KeyError or TypeError for others."""
        returns = {(int(row), int(column)): values for row, column, *values in content["returns"]}
        solutions = [Solution(**each) for each in content["solutions"]]
        return cls(content["versions"], returns, solutions, content["began"])


def table(game: MetaGame, names: Sequence[str]) -> list[list[Any]]:
    """Return the payoff matrix of the present solution with both mixtures, as rows of a table."""
    payoffs, solution = game.payoffs(), game.solutions[-1]
    corner = f"{names[0]} \\ {names[1]}"
    rows: list[list[Any]] = [[corner, *game.versions[1], "mixture"]]
    for place, version in enumerate(game.versions[0]):
        values = [f"{each:.4f}" for each in payoffs[place]]
        rows.append([version, *values, f"{solution.mixtures[0][place]:.4f}"])
    return [*rows, ["mixture", *(f"{each:.4f}" for each in solution.mixtures[1]), ""]]
