"""Self-play and leagues: win rates against past versions, weights, ratings, and their manager."""

import contextlib

import pytest
from member_servers import report, served
from parameter_databases import values

from relaax.checkpoints import DirectoryStore
from relaax.configuration.population_rules import population_rule
from relaax.errors import ConfigurationError
from relaax.parameters.database import DatabaseWriter, Metadata, SqliteMetadata
from relaax.populations.league import FIRST_ELO, Ladder
from relaax.populations.league_manager import LeagueManager
from relaax.populations.members import MemberPlace, Members
from relaax.populations.membership import EvaluatedEpisode, Membership
from relaax.telemetry.metrics import Metrics

TAGS = {10: "20261129_000001", 20: "20261129_000002"}


class OfOne:
    """A ladder of one policy, which plays against its past versions."""

    def __init__(self, **args):
        rule = population_rule("self_play", args)
        self.ladder = Ladder(rule, {"default": rule})
        self.note_tags(TAGS)

    @property
    def newest(self):
        return self.ladder.newest["default"]

    def note_tags(self, tags):
        self.ladder.note_tags("default", tags)

    def note(self, episodes):
        return self.ladder.note("default", "default", episodes)

    def win_rate(self, version):
        return self.ladder.win_rate("default", self.ladder.tagged["default"][version])

    def weight(self, version):
        return self.ladder.weight("default", self.ladder.tagged["default"][version])


def lost_by(version, count):
    return [EvaluatedEpisode(version, -1.0)] * count


def test_few_games_say_little_and_many_say_all():
    found = OfOne(prior_games=4, half_life_games=1e9)
    assert found.win_rate(10) == 0.5
    found.note(lost_by(10, 4))
    assert found.win_rate(10) == pytest.approx(6 / 8)
    found.note(lost_by(10, 9996))
    assert found.win_rate(10) > 0.999
    found.note([EvaluatedEpisode(20, 0.0)] * 1000)
    assert found.win_rate(20) == pytest.approx(0.5)


def test_recent_games_count_more():
    found = OfOne(half_life_games=10, prior_games=0.001)
    found.note(lost_by(10, 1000))
    found.note([EvaluatedEpisode(10, 1.0)] * 10)
    assert found.win_rate(10) == pytest.approx(0.5, abs=0.001)


def test_weights_follow_alphastar():
    found = {
        name: OfOne(weighting=name, prior_games=1, half_life_games=1e9)
        for name in ("hard", "variance", "uniform")
    }
    for each in found.values():
        each.note([*lost_by(10, 3), EvaluatedEpisode(10, 1.0), *lost_by(20, 4)])
    p, q = 3.5 / 5, 4.5 / 5
    assert found["hard"].weight(10) == pytest.approx((1 - p) ** 2)
    assert found["hard"].weight(20) == pytest.approx((1 - q) ** 2)
    assert found["variance"].weight(10) == pytest.approx(p * (1 - p))
    assert found["uniform"].weight(10) == found["uniform"].weight(20) == 1.0
    with pytest.raises(ConfigurationError, match="power: no effect with the weighting uniform"):
        OfOne(weighting="uniform", power=3)


def test_a_rating_rises_by_what_a_victory_was_not_expected():
    found = OfOne(elo_step=32)
    found.note(lost_by(10, 1))
    assert found.newest.elo == FIRST_ELO + 16  # equal ratings: half a point was expected
    found.note_tags({**TAGS, 30: "20261129_000003"})
    ratings = [each.elo for each in found.ladder.tagged["default"].values()]
    assert ratings == [FIRST_ELO, FIRST_ELO, FIRST_ELO + 16]
    before = found.newest.elo
    found.note([EvaluatedEpisode(30, 1.0)])
    assert found.newest.elo == before - 16
    # Against an opponent 400 points below, 10 of 11 points are expected.
    found.newest.elo = FIRST_ELO + 400
    found.note([EvaluatedEpisode(20, 0.0)])
    assert found.newest.elo == pytest.approx(FIRST_ELO + 400 + 32 * (1 / 2 - 10 / 11))


def test_games_of_other_versions_do_not_count_and_other_returns_are_refused():
    found = OfOne()
    assert found.note(lost_by(15, 3)) == 0
    assert found.newest.elo == FIRST_ELO
    with pytest.raises(ConfigurationError, match=r"version 10 of 'default' has the return 0\.5: a"):
        found.note([EvaluatedEpisode(10, 0.5)])


class Kept(Metrics):
    """Metrics that are looked at."""

    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))


class Training:
    """A policy's parameter server with two tagged versions, and what its manager keeps."""

    def __init__(self, resources, directory):
        metadata = Metadata(SqliteMetadata(directory / "metadata.sqlite"))
        self.database = DatabaseWriter(DirectoryStore(directory / "database"), metadata)
        for version, tag in TAGS.items():
            self.database.push(values(version), version, [tag])
        self.database.tag(20, "my_evaluation")
        self.membership = Membership(None)
        self.stub = resources.enter_context(served(self.membership, self.database))
        self.store, self.metrics = DirectoryStore(directory / "record"), Kept()

    def manager(self):
        """A manager as it starts, again too."""
        games = {"default": Members({"default": MemberPlace(self.stub)}, "population")}
        rule = population_rule("self_play", {"prior_games": 2})
        ladder, metrics = Ladder(rule, {"default": rule}), {"default": self.metrics}
        return LeagueManager(ladder, games, metrics, self.store, "self_play")


@pytest.fixture(name="training")
def _training(tmp_path):
    with contextlib.ExitStack() as resources:
        yield Training(resources, tmp_path)


def test_a_manager_sets_weights_and_ratings_of_versions(training):
    manager = training.manager()
    report(training.membership, -1.0, -1.0, version=10)
    report(training.membership, 1.0, version=20)
    manager.advance()
    first, second = (training.database.metadata_of(version).md for version in TAGS)
    assert first["pfsp"] == pytest.approx((1 - 3 / 4) ** 2, abs=0.01)
    assert second["pfsp"] == pytest.approx((1 - 1 / 3) ** 2, abs=0.01)
    assert first["elo"] == second["elo"] == FIRST_ELO
    ((name, rating),) = training.metrics.values
    assert (name, FIRST_ELO < rating < FIRST_ELO + 8) == ("elo", True)
    manager.write()
    lines = training.store.get("self_play.csv").decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["version", "10", "20"]
    assert lines[0] == "version,tag,elo,win_rate,pfsp,games"
    assert lines[1].startswith("10,20261129_000001,1000.0,0.749")
    assert lines[1].endswith(",2")


def test_a_manager_that_is_killed_counts_each_game_once(training):
    report(training.membership, -1.0, -1.0, version=10)
    training.manager().advance()
    rating = training.metrics.values[-1][1]
    again = training.manager()  # nothing was closed
    again.advance()
    assert training.metrics.values[-1][1] == rating
    report(training.membership, 0.0, version=10)
    again.advance()
    again.write()
    assert training.store.get("self_play.csv").decode().splitlines()[1].endswith(",3")
    training.database.push(values(30), 30, ["20261129_000003"])
    again.advance()
    assert training.database.metadata_of(30).md["elo"] == training.metrics.values[-1][1]
