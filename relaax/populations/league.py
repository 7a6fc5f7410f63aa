"""Learners and their opponents, tagged versions of policies: win rates, weights and ratings.

Prioritized fictitious self-play, and leagues: Vinyals et al. 2019, "Grandmaster level in StarCraft
II using multi-agent reinforcement learning", Methods. Self-play is a league of one policy. Ratings:
Elo 1978, "The Rating of Chessplayers".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relaax.configuration.population_rules import Learner, Ratings
from relaax.errors import ConfigurationError
from relaax.populations.membership import EvaluatedEpisode
from relaax.processes.identifiers import LATEST

#: The rating that a policy begins with, and the difference at which the stronger one scores 10 of
#: 11 points.
FIRST_ELO, ELO_SCALE = 1000.0, 400.0


@dataclass
class Games:
    """The games of a learner's newest version against an opponent."""

    #: Of recent games: how many there were, and what the learner has won of them, with 1 for a
    #: victory and 1/2 for a draw. Each game weighs less with each later one.
    games: float = 0.0
    points: float = 0.0
    #: All games.
    played: int = 0


@dataclass
class Opponent:
    """A tagged version of a policy, or the newest one, which changes."""

    tag: str
    #: The rating: of a tagged version the one that the policy had when it was tagged.
    elo: float = FIRST_ELO
    #: By learner.
    games: dict[str, Games] = field(default_factory=dict)


class Ladder:
    """Knows how well the newest versions of ``learners`` play against the versions of all."""

    def __init__(self, ratings: Ratings, learners: Mapping[str, Learner]) -> None:
        self._ratings = ratings
        self._decay = 0.5 ** (1 / ratings.half_life_games)
        self.learners = learners
        #: By policy: the newest version, and the tagged ones by version, the oldest first.
        self.newest = {name: Opponent(LATEST) for name in learners}
        self.tagged: dict[str, dict[int, Opponent]] = {name: {} for name in learners}

    def note_tags(self, policy: str, tags: Mapping[int, str]) -> None:
        """Take the tagged versions of a policy: new ones get the present rating.

        Those that have lost their tags are forgotten.
        """
        known, elo = self.tagged[policy], self.newest[policy].elo
        self.tagged[policy] = {
            version: known.get(version) or Opponent(tag, elo)
            for version, tag in sorted(tags.items())
        }

    def note(self, learner: str, policy: str, episodes: Iterable[EvaluatedEpisode]) -> int:
        """Take games of a policy's versions against a learner; return how many of them count.

        1. A game of a tagged version counts for this version; the learner's rating changes.
        2. A game of another policy's version without a tag counts for the newest version of this
           policy, and so does each game of the policy that the learner exploits; the ratings of
           both policies change.
        3. A game of a version of the learner's own policy without a tag does not count.

        The return is the opponent's; ConfigurationError for another one than -1, 0 and 1.
        """
        count = 0
        for each in episodes:
            if each.episode_return not in (-1, 0, 1):
                raise ConfigurationError(
                    f"a game of version {each.version} of {policy!r} has the return "
                    f"{each.episode_return:g}: a game of two players is lost, drawn or won, with "
                    "the return -1, 0 or 1"
                )
            count += self._played(learner, policy, each.version, (1 - each.episode_return) / 2)
        return count

    def win_rate(self, learner: str, opponent: Opponent) -> float:
        """Return the points of a learner's game that are to be expected, from 0 to 1."""
        games, prior = opponent.games.get(learner, Games()), self._ratings.prior_games
        return (games.points + prior / 2) / (games.games + prior)

    def rate_of_exploits(self, learner: str, exploited: str) -> float | None:
        """Return a learner's win rate against the newest version of the policy that it exploits.

        None where it has played fewer than ``half_life_games`` games.
        """
        opponent = self.newest[exploited]
        played = opponent.games.get(learner, Games()).played
        return None if played < self._ratings.half_life_games else self.win_rate(learner, opponent)

    def forget(self, name: str) -> None:
        """Forget the games of a learner, and those of others against its newest version."""
        for versions in self.tagged.values():
            for opponent in versions.values():
                opponent.games.pop(name, None)
        for opponent in self.newest.values():
            opponent.games.pop(name, None)
        self.newest[name].games.clear()

    def restart(self, name: str, exploited: str) -> None:
        """Take note that a learner has the parameters of the policy that it exploits."""
        self.forget(name)
        self.newest[name].elo = self.newest[exploited].elo

    def weight(self, learner: str, opponent: Opponent) -> float:
        """Return how often a learner is to have an opponent, in proportion to others."""
        rate, rule = self.win_rate(learner, opponent), self.learners[learner]
        if rule.weighting == "hard":
            return float((1 - rate) ** rule.power)
        return rate * (1 - rate) if rule.weighting == "variance" else 1.0

    def _played(self, learner: str, policy: str, version: int, points: float) -> bool:
        """Take a game; return whether it counts."""
        tagged, newest = self.tagged[policy].get(version), self.newest[policy]
        if tagged is not None:
            self._count(learner, tagged, points)
        if learner != policy and (tagged is None or self.learners[learner].exploits == policy):
            self._count(learner, newest, points)
            gain = self._gain(learner, newest, points)
            self.newest[learner].elo += gain
            newest.elo -= gain
        elif tagged is not None:
            self.newest[learner].elo += self._gain(learner, tagged, points)
        return tagged is not None or learner != policy

    def _count(self, learner: str, opponent: Opponent, points: float) -> None:
        games = opponent.games.setdefault(learner, Games())
        games.games = self._decay * games.games + 1
        games.points = self._decay * games.points + points
        games.played += 1

    def _gain(self, learner: str, opponent: Opponent, points: float) -> float:
        """Return by how much a learner's rating rises with a game."""
        expected = 1 / (1 + 10 ** ((opponent.elo - self.newest[learner].elo) / ELO_SCALE))
        return self._ratings.elo_step * (points - expected)
