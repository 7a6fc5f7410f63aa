"""PSRO: equilibria of meta-games, which episodes count, and a manager of two policies."""

import contextlib
import csv
import json
import random
import time
from itertools import product

import numpy as np
import pytest
from member_servers import report, served
from parameter_databases import values

from relaax.checkpoints import DirectoryStore
from relaax.configuration.population_rules import population_rule
from relaax.parameters.database import DatabaseWriter, Metadata, SqliteMetadata
from relaax.populations.cells import turns
from relaax.populations.members import MemberPlace, Members
from relaax.populations.membership import Membership
from relaax.populations.meta_game import exploitability, nash, uniform
from relaax.populations.psro import MetaGame
from relaax.populations.psro_manager import PAYOFFS, STATE, TABLE, PsroManager

ROCK_PAPER_SCISSORS = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def test_equilibria_of_known_games():
    row, column = nash(ROCK_PAPER_SCISSORS)
    assert row == pytest.approx([1 / 3] * 3)
    assert column == pytest.approx([1 / 3] * 3)
    game = np.array([[2.0, -1.0], [-1.0, 1.0]])
    row, column = nash(game)
    assert row == pytest.approx([0.4, 0.6])
    assert column == pytest.approx([0.4, 0.6])
    assert row @ game @ column == pytest.approx(0.2)
    assert uniform(np.zeros((2, 4)))[1] == pytest.approx([0.25] * 4)


def test_nobody_gains_by_leaving_an_equilibrium():
    generator = np.random.default_rng(1)
    for rows, columns in product((1, 2, 5), (1, 3, 4)):
        game = generator.normal(size=(rows, columns))
        assert exploitability(game, *nash(game)) == pytest.approx(0.0, abs=1e-7)


def test_exploitability_is_the_mean_gain_of_the_best_answers():
    rock, scissors = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    assert exploitability(ROCK_PAPER_SCISSORS, rock, rock) == 1.0
    assert exploitability(ROCK_PAPER_SCISSORS, rock, scissors) == 1.0


class Worker:
    """Plays one episode after another by the tagged versions, and reports some episodes late.

    A player's reports keep their order, and one player's may be later than the other one's.
    """

    def __init__(self, tags, seed):
        self.tags = list(tags)
        self._random = random.Random(seed)
        self._playing = tuple(tags)
        self._unsent = ([], [])

    def reports(self, player):
        """Play on; return some of the versions of a player with those that both had."""
        for _ in range(self._random.randrange(3)):
            for each, unsent in enumerate(self._unsent):
                unsent.append((self._playing[each], self._playing))
            self._playing = tuple(self.tags)  # pulled when the next one begins
        count = self._random.randrange(len(self._unsent[player]) + 1)
        sent, self._unsent[player][:count] = self._unsent[player][:count], []
        return sent


@pytest.mark.parametrize("seed", range(30))
def test_only_episodes_of_exactly_two_versions_count(seed):
    counts = (4, 3)
    missing = set(product(range(4), range(3))) - {(0, 0), (1, 1), (2, 0)}
    worker = Worker((1, 0), seed)
    played = {}
    for turn in turns((1, 0), missing, counts, episodes=2):
        worker.tags[turn.player] = turn.version
        found = []
        while len(found) < turn.episodes:
            reports = worker.reports(turn.player)
            found += [pair for version, pair in reports if version == turn.version]
        if turn.cell is not None:
            played[turn.cell] = found
    assert set(played) == missing
    for cell, pairs in played.items():
        assert set(pairs) == {cell}


class TwoPlayers:
    """Parameter servers of two policies whose versions move by their number, and a worker."""

    names = ("row", "column")

    def __init__(self, resources, directory):
        self.databases, self.memberships, places = {}, {}, {}
        for name in self.names:
            metadata = Metadata(SqliteMetadata(directory / f"{name}.sqlite"))
            database = DatabaseWriter(DirectoryStore(directory / name), metadata)
            self.databases[name], self.memberships[name] = database, Membership(None)
            stub = resources.enter_context(served(self.memberships[name], database))
            places[name] = MemberPlace(stub)
        self.places, self.store = places, DirectoryStore(directory / "record")

    def manager(self, clock=time.monotonic, **args):
        """A manager as it starts, again too."""
        rule = population_rule("psro", {"oracle_updates": 10, **args})
        return PsroManager(rule, Members(self.places, "population"), self.store, clock)

    def learn(self, version):
        """Let both policies have a version."""
        for database in self.databases.values():
            database.push(values(version), version)

    def play(self, tagged=None):
        """Play an episode, if both players have a tagged version; return those of the next one."""
        now = [each.list_tags().get("psro") for each in self.databases.values()]
        tagged = tagged or now
        if None in tagged:
            return None
        earned = ROCK_PAPER_SCISSORS[tagged[0] // 10 % 3, tagged[1] // 10 % 3]
        for name, version, sign in zip(self.names, tagged, (1, -1), strict=True):
            report(self.memberships[name], sign * earned, version=version)
        return now

    def weights(self, name):
        database = self.databases[name]
        found = {v: database.metadata_of(v) for v in database.list_versions()}
        return {v: each.md.get("psro") for v, each in found.items() if each is not None}

    def state(self):
        """What the manager has kept."""
        return json.loads(self.store.get(STATE))


@pytest.fixture(name="players")
def _players(tmp_path):
    with contextlib.ExitStack() as resources:
        yield TwoPlayers(resources, tmp_path)


def advance(manager, players, rounds=40):
    for _ in range(rounds):
        manager.advance()
        players.play()


def test_a_manager_finds_the_equilibrium_of_its_population(players):
    manager = players.manager()
    manager.advance()  # there is no version yet
    players.learn(0)
    advance(manager, players, 6)
    assert players.weights("row") == {0: 1.0}
    players.learn(9)  # too early
    advance(manager, players, 6)
    assert players.state()["versions"] == [[0], [0]]
    players.learn(10)
    advance(manager, players)
    assert players.weights("row") == pytest.approx({0: 0.0, 10: 1.0})  # paper beats rock
    players.learn(20)
    manager = players.manager()  # another one, as after kill -9
    advance(manager, players)
    assert manager.numbers() == pytest.approx(
        {"versions": 3, "value": 0, "exploitability": 0}, abs=1e-6
    )
    third = pytest.approx(1 / 3)
    assert players.weights("row") == players.weights("column") == {0: third, 10: third, 20: third}
    rows = list(csv.reader(players.store.get(PAYOFFS).decode().splitlines()))
    assert rows[0] == [r"row \ column", "0", "10", "20", "mixture"]
    assert [list(map(float, row[1:4])) for row in rows[1:4]] == ROCK_PAPER_SCISSORS.tolist()
    lines = players.store.get(TABLE).decode().splitlines()
    assert lines[0] == "population,row,column,value,exploitability"
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["1", "0", "0"], ["2", "10", "10"], ["3", "20", "20"]
    ]  # fmt: skip
    assert [float(line.split(",")[4]) for line in lines[1:]] == pytest.approx([0, 0, 0], abs=1e-6)
    assert players.databases["row"].list_tags()["psro_2"] == 20


def test_weights_are_set_anew_each_hour_so_that_they_do_not_expire(players):
    seconds = [0.0]
    manager = players.manager(clock=lambda: seconds[0])
    players.learn(0)
    advance(manager, players, 6)
    for database in players.databases.values():
        database.set_numbers({0: {"psro": 0.25}})  # as none of the manager's
    advance(manager, players, 2)
    assert players.weights("row") == {0: 0.25}
    seconds[0] = 3600.0
    advance(manager, players, 2)
    assert players.weights("row") == players.weights("column") == {0: 1.0}


def test_a_game_that_began_before_the_manager_counts_for_no_cell(players):
    for version in (0, 10, 20):
        players.learn(version)
    for database in players.databases.values():
        database.tag(10, "psro")  # by managers that were killed during one long game
    played = set(product(range(3), range(3))) - {(0, 1), (2, 1)}
    returns = {cell: [ROCK_PAPER_SCISSORS[cell]] for cell in played}
    game = MetaGame([[0, 10, 20], [0, 10, 20]], returns)
    players.store.put(STATE, json.dumps(game.written()).encode())
    manager, playing = players.manager(games_per_cell=1), [0, 0]
    for _ in range(40):
        manager.advance()
        playing = players.play(playing)
    found = players.store.get(PAYOFFS).decode().splitlines()
    rows = [list(map(float, row[1:4])) for row in csv.reader(found[1:4])]
    assert rows == ROCK_PAPER_SCISSORS.tolist()


def test_a_game_of_a_version_outside_of_the_population_counts_for_no_cell(players):
    for version in (0, 10, 20):
        players.learn(version)
    returns = {cell: [ROCK_PAPER_SCISSORS[cell]] for cell in ((0, 0), (1, 0), (1, 1))}
    game = MetaGame([[0, 10], [0, 10]], returns)
    players.store.put(STATE, json.dumps(game.written()).encode())
    for database in players.databases.values():
        for tag, version in (("psro_0", 0), ("psro_1", 10), ("psro", 10)):
            database.tag(version, tag)
    manager, playing, before = players.manager(games_per_cell=1), [10, 10], 10
    for _ in range(40):
        manager.advance()
        row, column = players.play(playing)
        playing, before = [before, column], row  # the row player's policy was pulled long before
    found = players.store.get(PAYOFFS).decode().splitlines()
    rows = [list(map(float, row[1:3])) for row in csv.reader(found[1:3])]
    assert rows == ROCK_PAPER_SCISSORS[:2, :2].tolist()
