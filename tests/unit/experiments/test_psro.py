"""PSRO in an experiment: its files and command lines, and its mistakes."""

import pytest
import yaml
from experiment_parts import trial_of
from processes import REPOSITORY

from relaax.configuration.population_rules import PopulationFile
from relaax.experiments.checks import mistakes
from relaax.experiments.files import load_experiment

EXAMPLE = REPOSITORY / "examples" / "experiments" / "psro.py"


def example():
    return load_experiment(EXAMPLE, "two_by_two")


def with_evaluating(**keys):
    described = example()
    actors = described.config.actors
    described.config.actors[2] = actors[2].model_copy(update=keys)
    return described


def with_two_evaluating():
    described = example()
    described.config.actors[1] = described.config.actors[2]
    return described


def with_one_policy():
    described = example()
    (manager,) = described.config.population_manager
    described.config.population_manager[0] = manager.model_copy(update={"population": ["row"]})
    return described


def drawing(field):
    described = example()
    actor = described.config.actors[0]
    learns, past = actor.inference_streams
    query = [{"$match": {}}, {"$draw": field}]
    streams = [learns, past.model_copy(update={"policy_identifier": query})]
    described.config.actors[0] = actor.model_copy(update={"inference_streams": streams})
    return described


def test_oracles_play_against_mixtures_and_the_manager_knows_both(tmp_path):
    trial = trial_of(example(), tmp_path)
    trial.write()
    words = dict(trial.lines())["population0"]
    assert [each.rpartition("/")[2] for each in words[2:4]] == ["row.yaml", "column.yaml"]
    told = PopulationFile.read(tmp_path / "population0.yaml")
    assert (told.rule().meta_solver, told.rule().games_per_cell) == ("nash", 1)
    for player in ("row", "column"):
        server = yaml.safe_load((tmp_path / "policies" / f"{player}.yaml").read_text())
        assert server["relaax-parameter-server"]["--push-initial"] is True
    oracle = next(each for each in trial.actor_groups if each.name == "actors0")
    learns, past = trial.agents_of(oracle)["groups"]
    assert "--learner" in learns["arguments"]
    assert past["arguments"][past["arguments"].index("--mode") + 1] == "eval_deterministic"


@pytest.mark.parametrize(
    ("described", "mistake"),
    [
        (lambda: drawing("md.prso"), "no manager of psro has the number 'md.prso'"),
        (with_one_policy, "population: psro has 2 policies, and here are 1"),
        (
            lambda: with_evaluating(ring_size=4),
            "psro has one actor worker with is_evaluation: true and ring_size: 1",
        ),
        (with_two_evaluating, "whose episodes go to 'population', and here are 2"),
        (
            lambda: with_evaluating(inference_streams=example().config.actors[0].inference_streams),
            "the actor worker of 'population' has inline streams with policy_identifier: psro",
        ),
    ],
)
def test_a_mistake_is_named(described, mistake):
    found = mistakes(described())
    assert any(mistake in each for each in found), found


@pytest.mark.parametrize("name", ["rock_paper_scissors", "two_by_two"])
def test_the_examples_have_no_mistake(name):
    assert mistakes(load_experiment(EXAMPLE, name)) == []
