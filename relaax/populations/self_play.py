"""Self-play against past versions of a policy, the ones that are hard to beat more often.

Prioritized fictitious self-play: Vinyals et al. 2019, "Grandmaster level in StarCraft II using
multi-agent reinforcement learning", Methods, "Prioritized fictitious self-play". Ratings: Elo 1978,
"The Rating of Chessplayers".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relaax.configuration.population_rules import SelfPlay
from relaax.errors import ConfigurationError
from relaax.populations.membership import EvaluatedEpisode

#: The rating that a policy begins with, and the difference at which the stronger one scores 10 of
#: 11 points.
FIRST_ELO, ELO_SCALE = 1000.0, 400.0


@dataclass
class Opponent:
    """A tagged version, and how the newest policy plays against it."""

    tag: str
    #: The rating of the newest policy when the version was tagged.
    elo: float
    #: Of recent games: how many there were, and what the newest policy has won of them, with 1 for
    #: a victory and 1/2 for a draw. Each game weighs less with each later one.
    games: float = 0.0
    points: float = 0.0
    #: All games.
    played: int = 0


class SelfPlayLadder:
    """Knows how well the newest version of a policy plays against its tagged versions."""

    def __init__(
        self,
        rule: SelfPlay,
        elo: float = FIRST_ELO,
        opponents: Mapping[int, Opponent] | None = None,
    ) -> None:
        self._rule = rule
        self._decay = 0.5 ** (1 / rule.half_life_games)
        #: The rating of the newest version.
        self.elo = elo
        #: By version, the oldest first.
        self.opponents = dict(opponents or {})

    def note_tags(self, tags: Mapping[int, str]) -> None:
        """Take the tagged versions: new ones get the present rating, lost ones are forgotten."""
        self.opponents = {
            version: self.opponents.get(version) or Opponent(tag, self.elo)
            for version, tag in sorted(tags.items())
        }

    def note(self, episodes: Iterable[EvaluatedEpisode]) -> int:
        """Take games of tagged versions against the newest one; return how many they were.

        The return is the opponent's; ConfigurationError for another one than -1, 0 and 1.
        """
        count = 0
        for each in episodes:
            opponent = self.opponents.get(each.version)
            if each.episode_return not in (-1, 0, 1):
                raise ConfigurationError(
                    f"self_play: a game of version {each.version} has the return "
                    f"{each.episode_return:g}: a game of two players is lost, drawn or won, with "
                    "the return -1, 0 or 1"
                )
            if opponent is not None:
                self._play(opponent, (1 - each.episode_return) / 2)
                count += 1
        return count

    def win_rate(self, version: int) -> float:
        """Return the points of a game against a version that are to be expected, from 0 to 1."""
        opponent, prior = self.opponents[version], self._rule.prior_games
        return (opponent.points + prior / 2) / (opponent.games + prior)

    def weight(self, version: int) -> float:
        """Return how often a version is to be the opponent, in proportion to others."""
        rate = self.win_rate(version)
        if self._rule.weighting == "hard":
            return float((1 - rate) ** self._rule.power)
        return rate * (1 - rate) if self._rule.weighting == "variance" else 1.0

    def _play(self, opponent: Opponent, points: float) -> None:
        opponent.games = self._decay * opponent.games + 1
        opponent.points = self._decay * opponent.points + points
        opponent.played += 1
        expected = 1 / (1 + 10 ** ((opponent.elo - self.elo) / ELO_SCALE))
        self.elo += self._rule.elo_step * (points - expected)
