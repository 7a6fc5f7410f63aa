"""Self-play and leagues: win rates against past versions, weights, ratings, and their manager."""

import contextlib
import csv
import random

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
from relaax.populations.membership import Done, EvaluatedEpisode, Membership, Order
from relaax.processes.identifiers import is_time_tag
from relaax.telemetry.metrics import Metrics

TAGS = {10: "20261129_000001", 20: "20261129_000002"}


class OfOne:
    """A ladder of one policy, which plays against its past versions."""

    def __init__(self, **args):
        rule = population_rule("self_play", args)
        self.ladder = Ladder(rule, {"default": rule.learner("population")})
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


LEARNERS = {
    "main": {"stream": "against_main", "weighting": "hard", "power": 3},
    "exploiter": {"stream": "against_exploiter", "weighting": "variance"},
}


def league(exploits=None, **args):
    exploiter = LEARNERS["exploiter"] | (exploits or {})
    rule = population_rule("league", {"learners": {**LEARNERS, "exploiter": exploiter}, **args})
    return Ladder(rule, rule.learners)


def test_a_league_has_the_figures_of_another_computation():
    generator = random.Random(1)
    found = league(half_life_games=7, prior_games=3, elo_step=24)
    for policy in LEARNERS:
        found.note_tags(policy, TAGS)
    ratings = dict.fromkeys(LEARNERS, 1000.0)
    results = {}
    for _ in range(500):
        learner, policy = generator.choices(list(LEARNERS), k=2)
        version, reported = generator.choice([10, 20, 25]), generator.choice([-1.0, 0.0, 1.0])
        found.note(learner, policy, [EvaluatedEpisode(version, reported)])
        score = {-1.0: 1.0, 0.0: 0.5, 1.0: 0.0}[reported]
        if version in TAGS:  # they were tagged when both ratings were 1,000
            results.setdefault((learner, policy, version), []).append(score)
            odds = 10 ** ((ratings[learner] - 1000.0) / 400)
            ratings[learner] += 24 * (score - odds / (1 + odds))
        elif learner != policy:
            results.setdefault((learner, policy, None), []).append(score)
            odds = 10 ** ((ratings[learner] - ratings[policy]) / 400)
            change = 24 * (score - odds / (1 + odds))
            ratings[learner] += change
            ratings[policy] -= change
    assert {name: each.elo for name, each in found.newest.items()} == pytest.approx(ratings)
    assert len(results) == 10
    for (learner, policy, version), scores in results.items():
        weights = [2 ** (-age / 7) for age in reversed(range(len(scores)))]
        points = sum(w * score for w, score in zip(weights, scores, strict=True))
        rate = (points + 1.5) / (sum(weights) + 3)
        opponent = found.newest[policy] if version is None else found.tagged[policy][version]
        assert found.win_rate(learner, opponent) == pytest.approx(rate)
        assert opponent.games[learner].played == len(scores)
        weight = (1 - rate) ** 3 if learner == "main" else rate * (1 - rate)
        assert found.weight(learner, opponent) == pytest.approx(weight)


class Kept(Metrics):
    """Metrics that are looked at."""

    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))


class Training:
    """A policy's parameter server with two tagged versions, and what its manager keeps."""

    def __init__(self, resources, directory):
        directory.mkdir(exist_ok=True)
        metadata = Metadata(SqliteMetadata(directory / "metadata.sqlite"))
        self.database = DatabaseWriter(DirectoryStore(directory / "database"), metadata)
        for version, tag in TAGS.items():
            self.database.push(values(version), version, [tag])
        self.database.tag(20, "my_evaluation")
        self.membership = Membership(DirectoryStore(directory / "orders"))
        self.stub = resources.enter_context(served(self.membership, self.database))
        self.store, self.metrics = DirectoryStore(directory / "record"), Kept()

    def manager(self, **clock):
        """A manager as it starts, again too."""
        games = {"default": Members({"default": MemberPlace(self.stub)}, "population")}
        rule = population_rule("self_play", {"prior_games": 2})
        ladder, metrics = (
            Ladder(rule, {"default": rule.learner("population")}),
            {"default": self.metrics},
        )
        return LeagueManager(ladder, games, metrics, self.store, "self_play", **clock)


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
    assert manager.numbers() == {"elo of default": rating, "versions of default": 2}
    manager.write()
    lines = training.store.get("self_play.csv").decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["version", "10", "20"]
    assert lines[0] == "version,tag,elo,win_rate,pfsp,games"
    assert lines[1].startswith("10,20261129_000001,1000.0,0.749")
    assert lines[1].endswith(",2")


def test_a_weight_is_set_anew_each_hour_so_that_it_does_not_expire(training):
    seconds = [0.0]
    manager = training.manager(clock=lambda: seconds[0])
    found = []
    for seconds[0] in (0.0, 3_599.0, 3_600.0):
        manager.advance()
        found.append(training.database.metadata_of(10).md["pfsp"])
        training.database.set_numbers({10: {"pfsp": 9.0}})
    assert found == [0.25, 9.0, 0.25]


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


class LeagueOfTwo:
    """The parameter servers of a main agent and an exploiter, and what their manager keeps."""

    def __init__(self, resources, directory):
        self.of = {name: Training(resources, directory / name) for name in LEARNERS}
        self.store = DirectoryStore(directory / "record")

    def manager(self, **args):
        """A manager as it starts, again too."""
        ladder = league(prior_games=2, **args)
        places = {
            name: MemberPlace(each.stub, f"checkpoints of {name}") for name, each in self.of.items()
        }
        games = {name: Members(places, each.stream) for name, each in ladder.learners.items()}
        metrics = {name: each.metrics for name, each in self.of.items()}
        return LeagueManager(ladder, games, metrics, self.store, "league")

    def report(self, learner, policy, *returns, version):
        report(self.of[policy].membership, *returns, version=version, streams=f"against_{learner}")

    def numbers(self, policy, version):
        return self.of[policy].database.metadata_of(version).md


@pytest.fixture(name="two")
def _two(tmp_path):
    with contextlib.ExitStack() as resources:
        yield LeagueOfTwo(resources, tmp_path)


def test_a_manager_of_a_league_knows_whose_games_are_reported(two):
    manager = two.manager()
    two.report("main", "main", -1.0, version=10)
    two.report("main", "exploiter", 1.0, version=20)
    two.report("exploiter", "main", 1.0, 1.0, version=27)
    manager.advance()
    assert two.numbers("main", 10)["pfsp_main"] == pytest.approx((1 / 3) ** 3)
    assert two.numbers("main", 10)["pfsp_exploiter"] == pytest.approx(1 / 4)
    assert two.numbers("exploiter", 20)["pfsp_main"] == pytest.approx((2 / 3) ** 3, abs=0.02)
    manager.write()
    lines = two.store.get("league.csv").decode().splitlines()
    rows = {(row["policy"], row["version"]): row for row in csv.DictReader(lines)}
    assert list(rows) == [(name, of) for name in LEARNERS for of in ("10", "20", "latest")]
    newest = rows["main", "latest"]
    assert float(newest["win_rate_exploiter"]) == pytest.approx(1 / 4, abs=0.02)
    assert newest["games_exploiter"] == "2"
    assert (newest["pfsp_main"], newest["games_main"]) == ("", "0")
    # The newest exploiter has lost two games, and the main agent has won those.
    ratings = {name: float(rows[name, "latest"]["elo"]) for name in LEARNERS}
    assert ratings["exploiter"] < FIRST_ELO - 15 < FIRST_ELO + 15 < ratings["main"]
    told = {name: dict(each.metrics.values) for name, each in two.of.items()}
    assert told["main"]["elo"] == pytest.approx(ratings["main"], abs=0.1)
    assert told["exploiter"]["elo"] == pytest.approx(ratings["exploiter"], abs=0.1)
    assert told["exploiter"]["win_rate/main"] == pytest.approx(1 / 4, abs=0.02)
    two.manager().write()  # one that starts again
    assert two.store.get("league.csv").decode().splitlines() == lines


EXPLOITS = {"exploits": "main", "reset_win_rate": 0.7, "reset_updates": 50}
RESET = Order(1, {}, "main", "checkpoints of main")


def test_an_exploiter_begins_anew_when_it_wins(two, capsys):
    manager = two.manager(exploits=EXPLOITS, half_life_games=10)
    exploiter = two.of["exploiter"]
    exploiter.database.push(values(25), 25)
    two.report("exploiter", "main", *[-1.0] * 9, version=10)  # the newest one, which has a tag
    manager.advance()
    assert exploiter.membership.order == Order()  # they are too few
    two.report("exploiter", "main", -1.0, version=21)
    two.report("main", "exploiter", 1.0, version=26)
    manager.advance()
    assert exploiter.membership.order == RESET
    said = capsys.readouterr().out
    assert "exploiter begins anew with the parameters of main: it wins 89.4% of its games" in said
    tags = {of: tag for tag, of in exploiter.database.list_tags().items() if is_time_tag(tag)}
    assert list(tags) == [10, 20, 25]
    manager.advance()  # its learner has not done it yet
    two.report("exploiter", "main", *[-1.0] * 20, version=22)  # it still plays as before
    manager.advance()
    assert exploiter.membership.order == RESET
    assert exploiter.database.metadata_of(25).md["elo"] > FIRST_ELO + 50
    exploiter.stub.note_done(Done(1, 31, 22))
    manager.advance()
    assert exploiter.metrics.values[-1] == ("resets", 1.0)
    manager.write()
    lines = two.store.get("league.csv").decode().splitlines()
    rows = {(row["policy"], row["version"]): row for row in csv.DictReader(lines)}
    newest = {name: rows[name, "latest"] for name in LEARNERS}
    assert newest["exploiter"]["elo"] == newest["main"]["elo"]
    assert (newest["main"]["games_exploiter"], newest["exploiter"]["games_main"]) == ("0", "0")
    for again in (manager, two.manager(exploits=EXPLOITS, half_life_games=10)):
        again.write()
        (reset,) = csv.DictReader(two.store.get("exploits.csv").decode().splitlines())
        found = [reset[key] for key in ("number", "target", "version", "source", "source_version")]
        assert found == ["1", "exploiter", "31", "main", "22"]
    # It goes on until it has had so many updates again, whatever it wins.
    for version, number in ((80, 1), (81, 2)):
        exploiter.database.push(values(version), version)
        manager.advance()
        assert exploiter.membership.order.number == number
    assert "it has had 50 updates" in capsys.readouterr().out


def test_an_exploiter_begins_anew_once_when_the_manager_is_killed(two):
    exploits = {**EXPLOITS, "reset_updates": 20}
    exploiter = two.of["exploiter"]
    two.manager(exploits=exploits).advance()
    assert exploiter.membership.order == RESET
    again = two.manager(exploits=exploits)
    again.advance()
    assert exploiter.membership.order == RESET
    exploiter.stub.note_done(Done(1, 30, 20))
    third = two.manager(exploits=exploits)  # and before it has taken note of that
    third.advance()
    exploiter.database.push(values(49), 49)
    two.manager(exploits=exploits).advance()
    assert exploiter.membership.order == RESET
    exploiter.database.push(values(50), 50)
    two.manager(exploits=exploits).advance()
    assert exploiter.membership.order == Order(2, {}, "main", "checkpoints of main")


@pytest.mark.parametrize("is_done", [False, True])
def test_games_of_before_count_for_no_rating_though_the_manager_is_killed(two, is_done):
    exploits = {**EXPLOITS, "reset_updates": 20}
    two.manager(exploits=exploits).advance()
    if is_done:
        two.of["exploiter"].stub.note_done(Done(1, 30, 20))
    two.report("exploiter", "main", *[-1.0] * 9, version=21)  # the exploiter wins as before
    again = two.manager(exploits=exploits)
    again.advance()
    assert again.numbers()["elo of main"] == FIRST_ELO


def test_an_exploiter_that_refuses_goes_on_and_is_asked_again_later(two, caplog):
    manager = two.manager(exploits={**EXPLOITS, "reset_updates": 20})
    exploiter = two.of["exploiter"]
    manager.advance()
    exploiter.stub.note_done(Done(1, refused="other shapes"))
    manager.advance()
    manager.advance()
    assert "exploiter goes on as it is: other shapes" in caplog.text
    assert exploiter.membership.order.number == 1
    assert exploiter.metrics.values == []
    exploiter.database.push(values(40), 40)
    manager.advance()
    assert exploiter.membership.order.number == 2
