"""Hyperparameters are explored as the rules of a population say."""

import math
import random

import numpy as np
import pytest

from relaax.configuration.population_rules import merged, population_rule
from relaax.errors import ConfigurationError
from relaax.populations.hyperparameters import explored

HYPERPARAMETERS = {"learning_rate": 1e-3, "batch_size": 64, "value_loss": {"delta": 10.0}}


def rules(*explore_configs):
    args = {"ready_interval": 1, "truncation_ratio": 0.5, "explore_configs": explore_configs}
    return population_rule("vanilla_pbt", args).explore_configs


def many(*explore_configs, count=400):
    found = rules(*explore_configs)
    return [explored(HYPERPARAMETERS, found, random.Random(seed)) for seed in range(count)]


def test_perturb_multiplies_by_one_of_the_factors():
    rule = {"keys": "learning_rate", "method": "perturb", "factors": [0.8, 1.2]}
    values = {each["learning_rate"] for each in many(rule)}
    assert sorted(values) == pytest.approx([0.8e-3, 1.2e-3])


def test_perturb_keeps_to_limits_and_whole_numbers_whole():
    limited = {"keys": "learning_rate", "method": "perturb", "factors": [0.1, 10]}
    found = many({**limited, "min_value": 5e-4, "max_value": 2e-3})
    assert {each["learning_rate"] for each in found} == {5e-4, 2e-3}
    whole = many({"keys": "batch_size", "method": "perturb", "factors": [0.79]}, count=1)
    assert (whole[0]["batch_size"], type(whole[0]["batch_size"])) == (51, int)


@pytest.mark.parametrize(
    ("value", "more", "found"),
    [
        (4, {"factors": [1.2], "max_value": 4.5}, 4),
        (4, {"factors": [1.2], "max_value": 3.5}, 3),
        (4, {"factors": [0.8], "min_value": 3.5}, 4),
        (2, {"factors": [0.8]}, 1),
        (2, {"factors": [1.2]}, 3),
        (-2, {"factors": [1.2]}, -3),
        (1, {"factors": [0.2]}, 1),
        (0, {"factors": [1.2]}, 0),
        (7, {"factors": [1]}, 7),
    ],
)
def test_a_whole_number_changes_by_one_at_least_and_keeps_to_limits(value, more, found):
    rule = {"keys": "passes", "method": "perturb", **more}
    assert explored({"passes": value}, rules(rule), random.Random(1)) == {"passes": found}


def test_limits_without_a_whole_number_are_refused_for_whole_numbers():
    limits = {"min_value": 2.2, "max_value": 2.8}
    rule = {"keys": "batch_size", "method": "perturb", "factors": [2], **limits}
    with pytest.raises(ConfigurationError, match="is a whole number, and there is none from"):
        many(rule, count=1)


def test_a_rule_changes_a_nested_key_and_no_other():
    keys = ["value_loss", "delta"]
    (found,) = many({"keys": keys, "method": "perturb", "factors": [2]}, count=1)
    assert found == {**HYPERPARAMETERS, "value_loss": {"delta": 20.0}}
    assert HYPERPARAMETERS["value_loss"] == {"delta": 10.0}


def test_rules_are_applied_one_after_the_other():
    twice = {"keys": "learning_rate", "method": "perturb", "factors": [2]}
    (found,) = many(twice, twice, count=1)
    assert found["learning_rate"] == pytest.approx(4e-3)


def resampled(**more):
    found = many({"keys": "learning_rate", "method": "resample", **more}, count=2000)
    return np.array([each["learning_rate"] for each in found])


def test_uniform_and_log_uniform_fill_their_range_evenly():
    evenly = resampled(distribution="uniform", value_range=[8, 12])
    assert 8 <= evenly.min() < evenly.max() <= 12
    assert evenly.mean() == pytest.approx(10, abs=0.1)
    by_magnitude = resampled(distribution="log_uniform", value_range=[1e-3, 1e-5])
    assert 1e-5 <= by_magnitude.min() < by_magnitude.max() <= 1e-3
    assert np.log10(by_magnitude).mean() == pytest.approx(-4, abs=0.05)
    assert np.log10(by_magnitude).std() == pytest.approx(2 / math.sqrt(12), abs=0.03)


def test_categorical_draws_each_value():
    found = resampled(distribution="categorical", values=[0.1, 0.2, 0.3])
    assert set(found) == {0.1, 0.2, 0.3}
    assert all(abs((found == value).mean() - 1 / 3) < 0.05 for value in (0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"keys": "lr", "method": "perturb", "factors": [2]}, "lr has no value to begin with"),
        ({"keys": ["value_loss"], "method": "perturb", "factors": [2]}, "perturb multiplies numb"),
    ],
)
def test_a_key_that_cannot_be_changed_is_named(rule, said):
    with pytest.raises(ConfigurationError, match=said):
        many(rule)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"keys": "x", "method": "shake"}, "method"),
        ({"keys": "x", "method": "perturb", "factors": []}, "factors"),
        (
            {"keys": "x", "method": "perturb", "factors": [1], "min_value": 2, "max_value": 1},
            "min_value 2.0 is above",
        ),
        ({"keys": "x", "method": "resample", "distribution": "uniform"}, "needs value_range"),
        ({"keys": "x", "method": "resample", "distribution": "categorical"}, "needs values"),
        (
            {
                "keys": "x",
                "method": "resample",
                "distribution": "log_uniform",
                "value_range": [0, 1],
            },
            "numbers above 0",
        ),
        ({"keys": "x", "method": "perturb", "factors": [1], "factor": 1}, "factor"),
    ],
)
def test_a_wrong_rule_is_refused_by_name(rule, said):
    with pytest.raises(ConfigurationError, match=said):
        rules(rule)


def test_an_unknown_algorithm_is_answered_with_those_that_there_are():
    with pytest.raises(ConfigurationError, match="did you mean vanilla_pbt"):
        population_rule("vanila_pbt", {})


def test_keys_are_merged_into_inner_sections():
    over = {"value_loss": {"delta": 1.0}, "seed": 2}
    assert merged(HYPERPARAMETERS, over) == {**HYPERPARAMETERS, **over}
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}) == {"a": {"b": 1, "c": 3}}
    assert merged({"a": {"b": 1}}, {"a": 2}) == {"a": 2}
