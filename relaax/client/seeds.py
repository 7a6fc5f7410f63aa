"""Seeds of environments: drawn, and not added up, so that no two environments share one."""

import os
import sys
from dataclasses import dataclass

from numpy.random import SeedSequence

from relaax.processes.run_variables import COPY, INCARNATION, LINE, number_in


@dataclass(frozen=True)
class EnvironmentSeeds:
    """Draws the seed of each environment of a program from the seed of the run.

    seed: of the run; without one environments have none. copy, incarnation, line: of the program.
    evaluates: evaluating and training environments get different seeds.
    """

    seed: int | None
    copy: int = 0
    incarnation: int = 0
    evaluates: bool = False
    line: str = ""

    def of(self, index: int, restarts: int = 0) -> int | None:
        """Return the seed of environment ``index`` that was made again ``restarts`` times.

        It has 31 bits, which any simulator takes.
        """
        if self.seed is None:
            return None
        own = (self.copy, index, self.incarnation, restarts, int(self.evaluates))
        key = (*own, *self.line.encode(errors="surrogateescape"))
        (drawn,) = SeedSequence(self.seed, spawn_key=key).generate_state(1)
        return int(drawn >> 1)


def seeds_of_this_program(seed: int | None, evaluates: bool = False) -> EnvironmentSeeds:
    """Return the seeds of this program's environments, from its variables.

    It exits with status 2, and a message, if a variable is not a whole number.
    """
    try:
        copy, incarnation = number_in(COPY), number_in(INCARNATION)
        return EnvironmentSeeds(seed, copy, incarnation, evaluates, os.environ.get(LINE, ""))
    except ValueError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error
