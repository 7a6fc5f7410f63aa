"""Self-play in an experiment: its files and command lines, and its mistakes."""

import pytest
import yaml
from experiment_parts import trial_of
from processes import REPOSITORY

from relaax.configuration.population_rules import PopulationFile
from relaax.experiments.checks import mistakes
from relaax.experiments.files import load_experiment

EXAMPLE = REPOSITORY / "examples" / "experiments" / "connect_four.py"


def example():
    return load_experiment(EXAMPLE, "connect_four")


def with_manager(**keys):
    described = example()
    (manager,) = described.config.population_manager
    described.config.population_manager[0] = manager.model_copy(update=keys)
    return described


def with_trainer(**keys):
    described = example()
    described.config.trainers[0] = described.config.trainers[0].model_copy(update=keys)
    return described


def with_actor(**keys):
    described = example()
    actors = described.config.actors
    described.config.actors[1:] = [each.model_copy(update=keys) for each in actors[1:]]
    return described


def drawing(field):
    """The example with another number by which past versions are drawn."""
    learns, past = example().config.actors[1].inference_streams
    query = [{"$match": {}}, {"$draw": field}]
    return with_actor(
        inference_streams=[learns, past.model_copy(update={"policy_identifier": query})]
    )


def test_games_of_past_versions_are_reported_to_the_population(tmp_path):
    trial = trial_of(example(), tmp_path)
    trial.write()
    groups = {each.name: trial.agents_of(each)["groups"] for each in trial.actor_groups}
    (itself,) = groups["actors0"]
    assert "--learner" in itself["arguments"]
    for name, (learns, past) in (("actors1", groups["actors1"]), ("actors2", groups["actors2"])):
        assert "--learner" in learns["arguments"], name
        words = past["arguments"]
        assert words[words.index("--mode") + 1] == "eval_stochastic"
        assert words[words.index("--eval-stream") + 1] == "population"
        assert "$draw" in words[words.index("--policy-identifier") + 1]
    told = PopulationFile.read(tmp_path / "population0.yaml")
    assert (told.rule().weighting, told.initial_hyperparams) == ("hard", {})
    member = yaml.safe_load((tmp_path / "policies" / "default.yaml").read_text())
    assert "--population-member" not in member["relaax-learner"]


@pytest.mark.parametrize(
    ("described", "mistake"),
    [
        (
            lambda: with_manager(population=["default", "default"]),
            "population: self_play has 1 policy, and here are 2",
        ),
        (
            lambda: with_manager(initial_hyperparams={"default": {"clip": 0.1}}),
            "initial_hyperparams: no effect with self_play",
        ),
        (
            lambda: with_trainer(push_frequency_steps=None),
            "population: no version of 'default' is tagged to be an opponent",
        ),
        (
            lambda: with_actor(ring_size=2),
            "an agent whose episodes go to 'population' acts by a past version: give its inline "
            "stream a policy_identifier, and the worker ring_size: 1",
        ),
        (
            lambda: with_actor(
                inference_streams=[example().config.actors[0].inference_streams[0]] * 2
            ),
            "an agent whose episodes go to 'population' acts by a past version",
        ),
        (lambda: drawing("md.pfps"), "the number 'md.pfps'; there are: md.elo, md.pfsp; did you"),
        (
            lambda: drawing("md.elo"),
            "population_algorithm: args: weighting: no effect: no inline stream has a "
            "policy_identifier that draws versions by md.pfsp",
        ),
        (lambda: drawing("md.psro"), "no manager of self_play has the number 'md.psro'"),
    ],
)
def test_a_mistake_is_named(described, mistake):
    found = mistakes(described())
    assert any(mistake in each for each in found), found


def test_the_example_has_no_mistake():
    assert mistakes(example()) == []
    assert mistakes(load_experiment(EXAMPLE, "connect_four_independent")) == []
