"""What learning.py trains on, and with which settings Stable-Baselines3 does."""

import pytest
from learning_cases import CASES
from zoo_settings import MOST_STEPS, falling, fraction

from relaax.configuration.yaml_reader import read_yaml


@pytest.mark.parametrize("name", CASES)
def test_a_case_ends_at_the_steps_of_its_configuration(name):
    assert CASES[name].steps == float(
        read_yaml(CASES[name].config_path)["algorithm"]["max_global_step"]
    )


@pytest.mark.parametrize("name", CASES)
def test_what_has_a_learner_is_evaluated_and_compared_with_the_same_algorithm(name):
    case = CASES[name]
    has_learner = case.learner_options is not None
    assert has_learner == (case.evaluation_episodes == 100)
    same = name.partition("_")[0].upper() if has_learner else "PPO"
    assert case.baseline.algorithm == same


def test_a_learners_addresses_and_places_are_not_those_of_its_configuration():
    options = CASES["sac_pendulum"].learner_options
    assert options is not None
    assert not {"bind", "parameter-server", "checkpoint-dir"} & set(options)


def test_a_schedule_falls_over_its_steps_to_a_tenth():
    rate = falling(0.001, 100_000)
    assert rate(1.0) == 0.001
    assert rate(1 - 50_000 / MOST_STEPS) == pytest.approx(0.0005)
    assert rate(0.0) == pytest.approx(0.0001)


def test_a_part_of_the_zoos_training_is_as_many_steps_of_ours():
    assert fraction(0.16, 50_000) * MOST_STEPS == pytest.approx(8000)
