"""The builder of methods that score candidates by whole episodes."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from relaax.algorithm_base import FloatVector
from relaax.assembly.parts import ExperienceParts, MethodBuilder, ParameterParts, PolicyParts
from relaax.learning.policy import Seat
from relaax.learning.population import Imprint, PopulationConfig, names_of
from relaax.learning.steps import EpisodeRows
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Rows

#: The one table.
TABLE = "episodes"

#: So many episodes wait for their learner: as long as it is away, the newest ones.
EPISODES_STORED = 16_384

ConfigT = TypeVar("ConfigT", bound=PopulationConfig)


class PopulationBuilder(MethodBuilder[ConfigT]):
    """Derive from it, and return the ``learner`` and the ``candidate_of`` a name.

    Each episode is played with a candidate, from its first step to its last. The candidates of a
    worker take turns.
    """

    @staticmethod
    @abstractmethod
    def candidate_of(name: str, vector: FloatVector, imprint: Imprint) -> FloatVector:
        """Return the parameters [size] of a candidate, made of the vector that is published."""

    def policy(self, seed: int) -> PolicyParts:
        """See MethodBuilder: workers make the candidates of what is published."""
        imprint = self.config.imprint()
        return replace(
            super().policy(seed),
            policy_of=Turns(names_of(self.config.settings.candidates)),
            variant_of=partial(self.candidate_of, imprint=imprint),
            imprint=imprint,
        )

    def experience(self) -> ExperienceParts:
        """See MethodBuilder: a row of each episode, which is drawn once."""
        config, columns = self.config, self.config.columns()
        return ExperienceParts(
            columns=columns,
            stored=columns,
            tables={TABLE: TableSpec(Rows(), "fifo", Limiter(), max_times_sampled=1)},
            capacity=EPISODES_STORED,
            units=config.units(),
            is_on_policy=False,
            episodes=EpisodeRows(config.settings.longest_episode, config.filters().length),
        )

    def parameters(self) -> ParameterParts:
        """See MethodBuilder: the policy that evaluations play with, and the numbers behind it."""
        config = self.config
        behind = [config.imprint().first_numbers(), *config.filters().initial()]
        return ParameterParts(
            initial=np.concatenate([config.initial(), *behind]),
            fingerprint=config.fingerprint(),
            max_global_step=config.settings.max_global_step,
        )


class Turns:
    """Names for the episodes of a worker, in turn, whatever environment begins the next one.

    So each of N names has an episode within any N that begin, and a generation is scored by the
    fewest. Workers begin with names far apart: by the place of their first environment, in the
    order of van der Corput: 0, 1/2, 1/4, 3/4, 1/8 and so on of all.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._next: int | None = None

    def __call__(self, seat: Seat) -> str:
        """Return the name for an episode that begins."""
        if self._next is None:
            digits = f"{seat.place:b}"
            self._next = int(int(digits[::-1], 2) / 2 ** len(digits) * len(self._names))
        name = self._names[self._next % len(self._names)]
        self._next += 1
        return name
