"""Orders and episodes at a parameter server's port, and a manager that asks for them there."""

import contextlib
from dataclasses import replace

import pytest
from member_servers import report, served
from parameter_databases import values

from relaax.checkpoints import DirectoryStore
from relaax.configuration.population_rules import population_rule
from relaax.errors import BridgeError, ConfigurationError, NoSuchVersion, ParameterServerAway
from relaax.parameters.database import DatabaseWriter, Metadata, SqliteMetadata
from relaax.populations.members import MemberPlace, Members
from relaax.populations.membership import Done, EvaluatedEpisode, Membership, Order, WrongNumber
from relaax.populations.record import PLOT, TABLE, PopulationRecord
from relaax.populations.stub import MemberStub, Versions
from relaax.populations.vanilla_pbt import VanillaPopulation
from relaax.populations.vanilla_pbt_manager import VanillaPbtManager

STREAM = "population"


def test_episodes_of_a_stream_come_once_each():
    membership = Membership(None)
    with served(membership) as stub:
        report(membership, 1.0, 2.0, streams="eval,population")
        report(membership, 9.0, streams="eval")
        found = stub.episodes(STREAM)
        assert found.latest == [EvaluatedEpisode(10, 1.0), EvaluatedEpisode(10, 2.0)]
        assert (found.count, found.incarnation) == (2, membership.incarnation)
        report(membership, 3.0, version=11)
        assert stub.episodes(STREAM, after=2).latest == [EvaluatedEpisode(11, 3.0)]
        assert stub.episodes(STREAM, after=3).latest == []
        assert stub.episodes("eval").count == 3


def test_an_order_outlives_its_parameter_server(tmp_path):
    order = Order(1, {"rate": 0.5, "inner": {"delta": 2}}, "best", "there")
    store = DirectoryStore(tmp_path)
    with served(Membership(store)) as stub:
        assert stub.membership() == (Order(), Done())
        stub.give(order)
        assert stub.membership() == (order, Done())
        stub.note_done(Done(1, 70))
    with served(Membership(store)) as stub:
        assert stub.membership() == (order, Done(1, 70))


def test_orders_follow_one_another(tmp_path):
    with served(Membership(DirectoryStore(tmp_path))) as stub:
        stub.give(Order(1))
        for wrong in (1, 3):
            with pytest.raises(WrongNumber, match=f"order {wrong} does not follow order 1"):
                stub.give(Order(wrong))
        with pytest.raises(WrongNumber, match="order 2 is not the last one"):
            stub.note_done(Done(2, 5))


def test_a_manager_sets_tags_and_numbers_of_versions(tmp_path):
    metadata = Metadata(SqliteMetadata(tmp_path / "metadata.sqlite"))
    database = DatabaseWriter(DirectoryStore(tmp_path), metadata)
    database.push(values(3), 3, ["first"])
    database.push(values(5), 5)
    with served(Membership(None), database) as stub:
        assert stub.versions() == Versions([3, 5], {"first": 3, "latest": 5})
        assert stub.tag("latest", "chosen") == stub.tag(5, "again") == 5
        stub.set_numbers({3: {"pfsp": 0.5}, 5: {"pfsp": 1.0}})
        assert database.list_tags() == {"latest": 5, "first": 3, "chosen": 5, "again": 5}
        assert (database.metadata_of(3).md, database.metadata_of(5).md) == (
            {"pfsp": 0.5},
            {"pfsp": 1.0},
        )
        for call in (lambda: stub.tag(4, "wrong"), lambda: stub.set_numbers({4: {"pfsp": 1.0}})):
            with pytest.raises(NoSuchVersion, match="there is no version 4"):
                call()
        with pytest.raises(BridgeError, match="a tag has up to 64 letters"):
            stub.tag(5, "a b")
    with served(Membership(None)) as stub, pytest.raises(BridgeError, match="no parameter databa"):
        stub.versions()


def test_an_order_that_is_refused_leaves_the_hyperparameters_of_before(tmp_path):
    store = DirectoryStore(tmp_path)
    with served(Membership(store)) as stub:
        stub.give(Order(1, {"rate": 0.5}, "best", "there"))
        stub.note_done(Done(1, 70, 69))
        stub.give(Order(2, {"rate": 0.1}, "worse", "elsewhere"))
        assert stub.membership()[0].hyperparameters == {"rate": 0.1}
        stub.note_done(Done(2, refused="other shapes"))
        after = Order(2, {"rate": 0.5}), Done(2, refused="other shapes")
        assert stub.membership() == after
    with served(Membership(store)) as stub:
        assert stub.membership() == after


def test_no_order_is_given_that_a_restart_would_forget():
    with (
        served(Membership(None)) as stub,
        pytest.raises(ParameterServerAway, match="--checkpoint-"),
    ):
        stub.give(Order(1))


def test_a_parameter_server_that_is_away_is_named():
    stub = MemberStub("localhost:1", call_timeout_s=0.2)
    with contextlib.closing(stub), pytest.raises(ParameterServerAway, match="localhost:1"):
        stub.membership()


class Population:
    """Two members at ports, and what their learners would do."""

    def __init__(self, resources, directory):
        self.memberships = {
            name: Membership(DirectoryStore(directory / name)) for name in ("weak", "strong")
        }
        self.stubs = {
            name: resources.enter_context(served(each)) for name, each in self.memberships.items()
        }
        self.store = DirectoryStore(directory / "record")
        self.refused = False

    def manager(self):
        """A manager as it starts, again too."""
        explore = [{"keys": "rate", "method": "perturb", "factors": [2]}]
        args = {"ready_interval": 5, "truncation_ratio": 0.5, "episodes": 2, "seed": 1}
        rule = population_rule("vanilla_pbt", {**args, "explore_configs": explore})
        hyperparameters = {name: {"rate": rate} for name, rate in (("weak", 1.0), ("strong", 3.0))}
        places = {
            name: MemberPlace(stub, f"checkpoints of {name}", self.require_allowed)
            for name, stub in self.stubs.items()
        }
        record = PopulationRecord(self.store, list(places))
        population = VanillaPopulation(rule, hyperparameters)
        return VanillaPbtManager(population, Members(places, STREAM), record)

    def require_allowed(self, hyperparameters):
        if self.refused:
            raise ConfigurationError("rate: too large")

    def play(self, weak, strong, version=10):
        report(self.memberships["weak"], weak, weak, version=version)
        report(self.memberships["strong"], strong, strong, version=version)


@pytest.fixture(name="population")
def _population(tmp_path):
    with contextlib.ExitStack() as resources:
        yield Population(resources, tmp_path)


ORDER = Order(1, {"rate": 6.0}, "strong", "checkpoints of strong")


def test_a_manager_orders_and_records_who_has_copied_whom(population, capsys):
    manager = population.manager()
    report(population.memberships["weak"], 0.0, 2.0, version=10)
    report(population.memberships["strong"], 8.0, 8.0, version=10)
    manager.advance()
    assert population.memberships["weak"].order == ORDER
    assert population.memberships["strong"].order == Order()
    said = "weak (mean return 1 ± 1) takes the parameters of strong (8 ± 0): rate 3 -> 6"
    assert said in capsys.readouterr().out
    manager.advance()  # the learner has not done it yet
    assert population.memberships["weak"].order.number == 1
    population.stubs["weak"].note_done(Done(1, 12, 9))
    manager.advance()
    lines = population.store.get(TABLE).decode().splitlines()
    assert lines[1] == '1,weak,12,1.0,strong,9,8.0,"{""rate"": 6.0}"'
    assert population.store.get(PLOT).startswith(b"\x89PNG")


def test_a_manager_that_starts_again_goes_on(population):
    population.play(weak=1.0, strong=8.0)
    population.manager().advance()
    again = population.manager()  # killed before the learner has taken the parameters
    again.advance()
    assert population.memberships["weak"].order == ORDER
    population.stubs["weak"].note_done(Done(1, 12, 9))
    third = population.manager()  # and again before it has recorded that
    third.advance()
    assert "weak,12,1.0,strong,9,8.0," in population.store.get(TABLE).decode()
    population.play(weak=1.0, strong=8.0, version=17)
    third.advance()
    assert population.memberships["weak"].order == Order(
        2, {"rate": 6.0}, "strong", "checkpoints of strong"
    )
    fourth = population.manager()
    population.stubs["weak"].note_done(Done(2, 18))
    fourth.advance()
    assert population.store.get(TABLE).decode().count("strong") == 2


def test_a_manager_that_starts_again_knows_who_was_ready(population):
    population.play(weak=8.0, strong=8.0)
    population.manager().advance()  # both are ready, and as good as each other
    again = population.manager()
    population.play(weak=1.0, strong=8.0, version=14)
    again.advance()
    assert population.memberships["weak"].order == Order()
    population.play(weak=1.0, strong=8.0, version=15)
    again.advance()
    assert population.memberships["weak"].order == ORDER


def test_an_order_whose_answer_is_lost_is_recorded_with_its_returns(population, monkeypatch):
    manager, stub = population.manager(), population.stubs["weak"]
    population.play(weak=1.0, strong=8.0)
    give = stub.give

    def lose_answer(order):
        give(order)
        raise ParameterServerAway("no answer in time")

    monkeypatch.setattr(stub, "give", lose_answer)
    manager.advance()
    manager.advance()  # it finds the order
    stub.note_done(Done(1, 12, 9))
    manager.advance()
    assert "weak,12,1.0,strong,9,8.0," in population.store.get(TABLE).decode()


def test_hyperparameters_that_are_not_allowed_are_not_ordered(population, caplog):
    population.refused = True
    manager = population.manager()
    population.play(weak=1.0, strong=8.0)
    manager.advance()
    assert population.memberships["weak"].order == Order()
    assert "weak goes on as it is: rate: too large" in caplog.text


def test_a_member_that_refuses_goes_on_as_it_was(population, caplog):
    manager = population.manager()
    population.play(weak=1.0, strong=8.0)
    manager.advance()
    population.stubs["weak"].note_done(Done(1, refused="other shapes"))
    manager.advance()
    assert "weak goes on as it is: other shapes" in caplog.text
    manager.write()
    assert len(population.store.get(TABLE).splitlines()) == 1  # it has copied nobody
    population.play(weak=1.0, strong=8.0, version=15)
    manager.advance()
    assert population.memberships["weak"].order == replace(ORDER, number=2)


def test_the_best_member_comes_first_and_one_without_episodes_is_named(population, capsys):
    manager = population.manager()
    report(population.memberships["strong"], 8.0, 8.0)
    manager.advance()
    manager.write()
    said = capsys.readouterr().out
    assert "mean returns: strong 8; weak has 0 evaluated episodes with its present" in said
    population.play(weak=1.0, strong=8.0)
    manager.advance()
    manager.write()
    assert "mean returns: strong 8, weak 1\n" in capsys.readouterr().out
