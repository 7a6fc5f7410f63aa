"""Weak members exploit strong ones when they are ready, and no others do."""

import math

import pytest

from relaax.configuration.population_rules import population_rule
from relaax.errors import ConfigurationError
from relaax.populations.membership import EvaluatedEpisode
from relaax.populations.vanilla_pbt import VanillaPopulation

RATES = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}


def population(names="abcd", **more):
    explore = [{"keys": "rate", "method": "perturb", "factors": [2]}]
    args = {"ready_interval": 10, "truncation_ratio": 0.25, "episodes": 3, "seed": 1}
    rule = population_rule("vanilla_pbt", {**args, "explore_configs": explore, **more})
    return VanillaPopulation(rule, {name: {"rate": RATES[name]} for name in names})


def play(members, version=10, **returns):
    """Let each member play three episodes of a version."""
    for name, mean in returns.items():
        members.note(name, [EvaluatedEpisode(version, mean)] * 3)


def test_the_worst_takes_parameters_and_changed_hyperparameters_of_the_best():
    members = population()
    play(members, a=5.0, b=1.0, c=3.0, d=2.0)
    (found,) = members.exploits()
    assert found == ("b", "a", 1.0, 5.0, 0.0, 0.0, {"rate": 1.0}, {"rate": 2.0})


def test_returns_that_differ_by_chance_have_large_errors():
    members = population()
    play(members, a=5.0, c=3.0, d=2.0)
    members.note("b", [EvaluatedEpisode(10, each) for each in (-2.0, 1.0, 4.0)])
    (found,) = members.exploits()
    assert (found.target_return, found.target_error) == (1.0, pytest.approx(3 / math.sqrt(3)))


def test_as_many_are_truncated_as_the_ratio_says():
    members = population(truncation_ratio=0.5)
    play(members, a=1.0, b=2.0, c=8.0, d=9.0)
    found = members.exploits()
    assert [each.target for each in found] == ["a", "b"]
    assert {each.source for each in found} <= {"c", "d"}


def test_nothing_happens_before_the_interval_is_over_and_again_after_it():
    members = population()
    play(members, version=9, a=1.0, b=2.0, c=3.0, d=4.0)
    assert members.exploits() == []
    play(members, version=10, a=1.0, b=2.0, c=3.0, d=4.0)
    assert [each.target for each in members.exploits()] == ["a"]
    members.went_on("a", 11)
    play(members, version=20, a=1.0, b=2.0, c=3.0, d=4.0)
    assert members.exploits() == []  # a counts from 11, and the others are not the worst
    play(members, version=21, a=1.0)
    assert [each.target for each in members.exploits()] == ["a"]


def test_nobody_exploits_before_all_have_enough_episodes():
    members = population()
    play(members, a=1.0, b=2.0, c=3.0)
    members.note("d", [EvaluatedEpisode(10, 4.0)] * 2)
    assert members.exploits() == []
    members.note("d", [EvaluatedEpisode(10, 4.0)])
    assert len(members.exploits()) == 1


def test_equals_do_not_exploit_one_another():
    members = population("ab", truncation_ratio=0.5)
    play(members, a=500.0, b=500.0)
    assert members.exploits() == []


def test_episodes_of_before_an_exploit_do_not_count():
    members = population("ab", truncation_ratio=0.5)
    play(members, a=1.0, b=9.0)
    assert [each.target for each in members.exploits()] == ["a"]
    play(members, version=12, a=1.0)  # while its learner takes the parameters
    members.went_on("a", 13)
    play(members, version=12, a=1.0)  # by an actor that has not pulled yet
    assert members.members["a"].returns.maxlen == 3
    assert list(members.members["a"].returns) == []
    play(members, version=13, a=9.5)
    assert members.members["a"].mean_return == 9.5


def test_a_member_without_a_result_waits_and_is_no_source():
    members = population("abcd", truncation_ratio=0.25)
    play(members, a=1.0, b=2.0, c=3.0, d=4.0)
    assert [(each.target, each.source) for each in members.exploits()] == [("a", "d")]
    play(members, version=30, b=9.0, c=3.0, d=4.0)
    found = members.exploits()
    assert [(each.target, each.source) for each in found] == [("c", "b")]


def test_a_source_stays_as_it_is_until_its_parameters_are_taken():
    members = population("abc", truncation_ratio=0.34)
    play(members, a=1.0, b=2.0, c=3.0)
    assert [(each.target, each.source) for each in members.exploits()] == [("a", "c")]
    play(members, version=30, b=9.0, c=3.0)
    assert members.exploits() == []
    members.went_on("a", 31)
    play(members, version=32, a=9.5, b=9.0, c=3.0)
    assert [(each.target, each.source) for each in members.exploits()] == [("c", "a")]


def test_a_population_that_would_never_exploit_is_refused():
    with pytest.raises(ConfigurationError, match="less than one"):
        population("abc", truncation_ratio=0.3)


def test_a_member_stays_ready_while_too_few_others_have_results():
    members = population("ab", truncation_ratio=0.5)
    play(members, a=1.0, b=9.0)
    assert [each.target for each in members.exploits()] == ["a"]
    play(members, version=30, b=9.0)
    assert members.exploits() == []  # a waits for its learner
    members.went_on("a", 40)
    play(members, version=41, a=10.0)
    assert [each.target for each in members.exploits()] == ["b"]


def test_what_nobody_copies_without_is_said():
    members = population("ab", truncation_ratio=0.5)
    play(members, b=9.0)
    assert members.missing().startswith("a has 0 evaluated episodes")
    play(members, a=1.0)
    assert members.missing() == ""
