"""A league in an experiment: its files and command lines, and its mistakes."""

import pytest
import yaml
from experiment_parts import NULL, trial_of
from processes import REPOSITORY

from relaax.configuration.population_rules import PopulationFile
from relaax.errors import ConfigurationError
from relaax.experiments import (
    InferenceStream,
    PolicyWorker,
    PopulationAlgorithm,
    PopulationManager,
    SampleStream,
)
from relaax.experiments.checks import mistakes
from relaax.experiments.diagram import mermaid
from relaax.experiments.files import load_experiment

EXAMPLE = REPOSITORY / "examples" / "experiments" / "league.py"


EXPLOITER = {"stream": "against_exploiter", "exploits": "main", "reset_win_rate": 0.6}


def stream(name):
    return SampleStream(type_=SampleStream.Type.NAME, stream_name=name)


def example():
    return load_experiment(EXAMPLE, "league")


def with_manager(**keys):
    described = example()
    (manager,) = described.config.population_manager
    described.config.population_manager[0] = manager.model_copy(update=keys)
    return described


def with_learners(**learners):
    """The example with other learners; None: without one."""
    algorithm = example().config.population_manager[0].population_algorithm
    given = {**algorithm.args["learners"], **learners}
    given = {name: each for name, each in given.items() if each is not None}
    args = {**algorithm.args, "learners": given}
    return with_manager(population_algorithm=algorithm.model_copy(update={"args": args}))


def with_trainer(number, **keys):
    described = example()
    trainer = described.config.trainers[number]
    described.config.trainers[number] = trainer.model_copy(update=keys)
    return described


def with_another_network():
    policy = example().config.trainers[1].policy
    return with_trainer(1, policy=policy.model_copy(update={"args": {**policy.args, "x": 1}}))


def with_actors(*numbers, **keys):
    described = example()
    for number in numbers:
        actor = described.config.actors[number]
        described.config.actors[number] = actor.model_copy(update=keys)
    return described


def reporting(*numbers, stream):
    """The example with another stream of the opponents of actor workers."""
    (learns, _) = example().config.actors[numbers[0]].sample_streams
    return with_actors(*numbers, sample_streams=[learns, stream])


def pulling(number, identifier):
    """The example with another identifier of the opponents of an actor worker."""
    learns, plays = example().config.actors[number].inference_streams
    other = plays.model_copy(update={"policy_identifier": identifier})
    return with_actors(number, inference_streams=[learns, other])


def served(number, place, identifier):
    """The example with policy workers in the place of an inline stream of an actor worker."""
    described = example()
    streams = list(described.config.actors[number].inference_streams)
    inline = streams[place]
    streams[place] = InferenceStream(type_=InferenceStream.Type.NAME, stream_name="served")
    worker = PolicyWorker(
        policy_name=inline.policy_name,
        inference_stream=streams[place],
        policy=inline.policy,
        policy_identifier=identifier,
        parameter_db=inline.parameter_db,
    )
    described = with_actors(number, inference_streams=streams)
    described.config.policies.append(worker)
    return described


def beside_self_play():
    """The example, and a population of another policy whose past versions are drawn."""
    described = example()
    algorithm = PopulationAlgorithm(type_="self_play", args={})
    described.config.population_manager.append(
        PopulationManager(
            population=["alone"],
            population_algorithm=algorithm,
            population_sample_stream=stream("alone_population"),
        )
    )
    actor = described.config.actors[1]
    inline = actor.inference_streams[0].model_copy(
        update={"policy_name": "alone", "policy_identifier": drawing("md.pfsp")}
    )
    described.config.actors[0] = actor.model_copy(
        update={"inference_streams": [*actor.inference_streams, inline]}
    )
    return described


def drawing(field):
    return [{"$match": {}}, {"$draw": field}]


def test_opponents_report_to_the_stream_of_the_learner(tmp_path):
    trial = trial_of(example(), tmp_path)
    trial.write()
    streams = []
    for group in trial.actor_groups[1:]:
        learns, plays = trial.agents_of(group)["groups"]
        assert "--learner" in learns["arguments"]
        words = plays["arguments"]
        streams.append(words[words.index("--eval-stream") + 1])
    assert streams == ["against_main"] * 4 + ["against_exploiter"] * 2
    told = PopulationFile.read(tmp_path / "population0.yaml")
    assert told.rule().learners["main"].stream == "against_main"
    assert "against_exploiter" in mermaid(example())
    for name in ("main", "exploiter"):  # one takes the parameters of the other
        learner = yaml.safe_load((tmp_path / "policies" / f"{name}.yaml").read_text())
        assert learner["relaax-learner"]["--population-member"] is True


@pytest.mark.parametrize(
    ("described", "mistake"),
    [
        (
            lambda: with_manager(population=["main"]),
            "population: league has 2 policies or more, and here are 1",
        ),
        (
            lambda: with_manager(population_sample_stream=stream("population")),
            "population_sample_stream: no effect with league, whose learners each have a stream",
        ),
        (lambda: with_learners(exploiter=None), "learners: 'exploiter' is missing: name the"),
        (
            lambda: with_learners(exploter={"stream": "other"}),
            "learners: 'exploter' is no member of the population; did you mean exploiter?",
        ),
        (lambda: with_learners(exploiter={}), "league: learners: exploiter: stream: "),
        (
            lambda: with_learners(exploiter={"stream": "against_main"}),
            "main and exploiter have the stream 'against_main': each needs one of its own",
        ),
        (
            lambda: with_learners(exploiter={"stream": "main"}),
            "exploiter: stream: trainers take the steps of 'main'",
        ),
        (
            lambda: with_learners(exploiter={"stream": "against_exploiter", "weighting": "hard"}),
            "exploiter: weighting: no effect: no inline stream has a policy_identifier that draws "
            "versions by md.pfsp_exploiter",
        ),
        (
            lambda: pulling(1, drawing("md.pfsp_mian")),
            "actors: 1: inference_streams: 1: policy_identifier: no manager of league has the "
            "number 'md.pfsp_mian'; there are: md.elo, md.pfsp_exploiter, md.pfsp_main; did you "
            "mean md.pfsp_main?",
        ),
        (lambda: pulling(1, drawing("md.psfp_main")), "did you mean md.pfsp_main?"),
        (lambda: pulling(1, drawing("pfsp_main")), "no manager of league has the number"),
        (lambda: served(1, 1, drawing("md.pfsp")), "policies: 0: policy_identifier: no manager"),
        (
            lambda: served(1, 1, drawing("md.pfsp_main")),
            "an agent whose episodes go to 'against_main' acts by a past version, and its policy "
            "workers may choose by several versions in one game",
        ),
        (
            lambda: served(1, 0, "20261129_000001"),
            "no agent of this worker acts by its newest version",
        ),
        (
            lambda: reporting(5, 6, stream=NULL),
            "learners: exploiter: stream: no actor has an agent whose episodes go to the stream "
            "'against_exploiter'",
        ),
        (
            lambda: with_learners(exploiter={**EXPLOITER, "exploits": "mian"}),
            "learners: exploiter: exploits: 'mian' is no other learner; there are: main",
        ),
        (
            lambda: with_learners(exploiter={**EXPLOITER, "exploits": None}),
            "exploiter: reset_win_rate: no effect without exploits",
        ),
        (
            lambda: with_learners(exploiter={**EXPLOITER, "reset_win_rate": 0.98}),
            "exploiter: reset_win_rate: 0.98 is never exceeded: with these half_life_games and "
            "prior_games a win rate is below 0.974",
        ),
        (
            lambda: pulling(5, [{"$match": {}}, {"$draw": "md.pfsp_exploiter"}]),
            "the policy 'exploiter' exploits 'main', and plays against its newest version",
        ),
        (with_another_network, "'exploiter' and 'main' have different policies"),
        (
            lambda: with_learners(
                main={"stream": "against_main", "exploits": "exploiter"},
                exploiter={"stream": "against_exploiter"},
            ),
            "the policy 'main' exploits 'exploiter', and plays against its newest version",
        ),
        (lambda: with_trainer(0, push_frequency_steps=None), "no version of 'main' is tagged"),
        (
            lambda: pulling(1, "latest"),
            "an agent whose episodes go to 'against_main' acts by a past version: give its inline",
        ),
        (
            lambda: with_actors(5, ring_size=2),
            "an agent whose episodes go to 'against_exploiter' acts by one version in each game: "
            "give the worker ring_size: 1",
        ),
        (
            lambda: reporting(5, stream=stream("against_main")),
            "the games of the stream 'against_main' are those of 'main', and no agent of this "
            "worker acts by its newest version",
        ),
    ],
)
def test_a_mistake_is_named(described, mistake):
    found = mistakes(described())
    assert any(mistake in each for each in found), found


def test_a_file_names_a_stream_where_there_is_one(tmp_path):
    (tmp_path / "rules.yaml").write_text("population_algorithm: {type_: self_play}")
    with pytest.raises(ConfigurationError, match="population_sample_stream: self_play needs the"):
        PopulationFile.read(tmp_path / "rules.yaml").rule()


@pytest.mark.parametrize("name", ["pfsp_main", "elo", "episode_return", "win_rate", "profit"])
def test_versions_are_drawn_by_numbers_of_the_manager_and_of_episodes(name):
    assert mistakes(pulling(1, drawing(f"md.{name}"))) == []


def test_each_population_has_draws_of_its_own():
    found = mistakes(beside_self_play())
    assert not any("has the number" in mistake for mistake in found), found


def test_policy_workers_choose_by_newest_versions():
    found = mistakes(served(5, 1, "latest"))
    assert not any("agent_specs" in mistake for mistake in found), found


def test_the_example_has_no_mistake():
    assert mistakes(example()) == []
    # The versions of an exploiter are tagged when it begins anew.
    assert mistakes(with_trainer(1, push_frequency_steps=None)) == []
