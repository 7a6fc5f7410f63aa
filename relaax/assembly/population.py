"""The builder of methods that score candidates by whole episodes."""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from relaax.assembly.parts import ExperienceParts, MethodBuilder, ParameterParts, PolicyParts
from relaax.learning.policy import Seat
from relaax.learning.population import PopulationConfig, names_of
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
    """Derive from it, and return the ``learner``.

    Each episode is played with a candidate, from its first step to its last. The candidates take
    turns, however many environments there are.
    """

    def policy(self, seed: int) -> PolicyParts:
        """See MethodBuilder."""
        names = names_of(self.config.settings.candidates)

        def candidate(seat: Seat) -> str:
            return names[place_in_turn(seat, len(names))]

        return replace(
            super().policy(seed),
            policy_of=candidate,
            pins_episodes=True,
            imprint=self.config.imprint(),
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
        behind = [config.imprint().numbers(), *config.filters().initial()]
        return ParameterParts(
            initial=np.concatenate([config.initial(), *behind]),
            fingerprint=config.fingerprint(),
            max_global_step=config.settings.max_global_step,
        )


def place_in_turn(seat: Seat, count: int) -> int:
    """Return which of ``count`` candidates an episode is played with.

    Each environment begins with another one, and goes on in the order of van der Corput: 0, 1/2,
    1/4, 3/4, 1/8 and so on of all. So few environments that play at once seldom play the same.
    """
    digits = f"{seat.episode:b}"
    part = int(digits[::-1], 2) / 2 ** len(digits)
    return (seat.place + int(part * count)) % count
