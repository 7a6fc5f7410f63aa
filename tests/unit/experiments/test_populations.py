"""A population in an experiment: its files and command lines, and its mistakes."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from experiment_parts import NULL, trial_of
from processes import REPOSITORY

from relaax.configuration.population_rules import PopulationFile
from relaax.configuration.wandb_runs import read_wandb_runs
from relaax.experiments.checks import mistakes
from relaax.experiments.diagram import mermaid
from relaax.experiments.files import load_experiment
from relaax.experiments.written import from_yaml, to_yaml

EXAMPLES = REPOSITORY / "examples" / "experiments"
NAMES = [f"policy_{number}" for number in range(4)]

PERTURB = {"method": "perturb", "factors": [2]}


def changed(**managers):
    """The example with other keys of its manager."""
    described = load_experiment(EXAMPLES / "pbt.py", "pbt")
    (manager,) = described.config.population_manager
    described.config.population_manager[0] = manager.model_copy(update=managers)
    return described


def rule(**more):
    algorithm = changed().config.population_manager[0].population_algorithm
    return algorithm.model_copy(update={"args": {**algorithm.args, **more}})


def test_a_manager_is_started_with_the_files_of_its_members(tmp_path):
    trial = trial_of(changed(), tmp_path)
    trial.write()
    lines = dict(trial.lines())
    words = lines["population0"]
    assert words[:2] == ["relaax-population-manager", "--members"]
    assert words[2:6] == [str(tmp_path / "policies" / f"{name}.yaml") for name in NAMES]
    servers = [trial.policies[name].parameter_server for name in NAMES]
    assert words[6:] == [
        "--parameter-servers", *servers,
        "--rules", str(tmp_path / "population0.yaml"),
        "--directory", str(tmp_path / "population0"),
    ]  # fmt: skip
    told = PopulationFile.read(tmp_path / "population0.yaml")
    assert told.population_sample_stream == "population"
    assert told.rule().ready_interval == 20
    begun = {name: keys["initial_learning_rate"] for name, keys in told.initial_hyperparams.items()}
    assert begun == {"policy_0": 1e-3, "policy_1": 3e-4, "policy_2": 3e-6, "policy_3": 1e-6}
    assert "seed" not in told.initial_hyperparams["policy_0"]
    member = yaml.safe_load((tmp_path / "policies" / "policy_2.yaml").read_text())
    assert member["algorithm"]["initial_learning_rate"] == 3e-6
    assert member["relaax-learner"]["--population-member"] is True
    assert member["relaax-learner"]["--checkpoint-dir"].endswith("policies/policy_2/learner0")


def test_a_manager_has_a_run_of_its_own(tmp_path):
    trial = trial_of(changed(), tmp_path / "one", has_wandb=True)
    trial.write()
    words = dict(trial.lines())["population0"]
    (run,) = read_wandb_runs(Path(words[words.index("--wandb-runs") + 1]))
    assert (run.project, run.group) == ("pbt", "one")
    assert (run.job_type, run.name) == ("population_manager", "unnamed")
    assert run.config["population.0"] == "policy_0"


def test_evaluated_episodes_are_reported_to_the_population(tmp_path):
    trial = trial_of(changed(), tmp_path)
    (group,) = trial.agents_of(trial.actor_groups[4])["groups"]
    assert group["arguments"][-2:] == ["--eval-stream", "population"]


def test_an_agent_reports_to_an_evaluation_and_to_a_population(tmp_path):
    trial = trial_of(load_experiment(EXAMPLES / "atari_pbt.py", "atari-pbt-mini"), tmp_path)
    first, others = trial.agents_of(trial.actor_groups[1])["groups"]
    assert first["arguments"][-2:] == ["--eval-stream", "eval_policy_0,population_stream"]
    assert others["arguments"][-2:] == ["--mode", "eval_deterministic"]
    assert "population0" in shlex.join(next(words for n, words in trial.lines() if n[:4] == "popu"))


@pytest.mark.parametrize("file", ["pbt.py", "atari_pbt.py"])
def test_the_twin_in_yaml_is_the_same(tmp_path, file):
    described = load_experiment(EXAMPLES / file, None)
    (tmp_path / "twin.yaml").write_text(to_yaml(described))
    assert from_yaml(tmp_path / "twin.yaml") == described
    assert mistakes(described) == []


def test_a_drawing_shows_the_manager_and_its_ways():
    drawn = mermaid(changed())
    assert 'population_0["manager of a population: vanilla_pbt"]' in drawn
    assert 'population_0 -->|"orders"| parameters_policy_5f_3' in drawn
    assert 'actors7 -->|"episodes of .*: population"| population_0' in drawn


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"population": ["policy_0", "policy_9"]}, "no trainer has the policy 'policy_9'"),
        ({"population": ["policy_0", "policy_0"]}, "'policy_0' is a member 2 times"),
        ({"population_sample_stream": NULL}, "population_sample_stream: must be the name"),
        (
            {"initial_hyperparams": {"policy_9": {}}},
            "initial_hyperparams: 'policy_9' is no member of the population",
        ),
        (
            {"initial_hyperparams": {"policy_0": {"initial_learning_rate": 1e-3}}},
            "of 'policy_0' and 'policy_1' only one has a value of initial_learning_rate",
        ),
        ({"population_algorithm": rule(truncation_ratio=0.7)}, "vanilla_pbt: truncation_ratio"),
        (
            {"population_algorithm": rule(truncation_ratio=0.2)},
            "population_algorithm: args: truncation_ratio: 0.2 of 4 members is less than one",
        ),
        (
            {"population_algorithm": rule(explore_configs=[{**PERTURB, "keys": "initial_rate"}])},
            "explore_configs: 0: keys: the hyperparameter initial_rate has no value to begin with",
        ),
        (
            {"population_algorithm": rule(explore_configs=[{**PERTURB, "keys": "optimiser"}])},
            "explore_configs: 0: keys: the hyperparameter optimiser has no value",
        ),
        ({"population_algorithm": rule(ready=1)}, "vanilla_pbt: ready"),
        (
            {"population_algorithm": rule(population=["policy_0", "policy_1"])},
            "args: population: is another one than the manager's",
        ),
    ],
)
def test_a_mistake_is_named(keys, said):
    found = mistakes(changed(**keys))
    assert any(said in mistake for mistake in found), found


def without_evaluation():
    described = changed()
    described.config.actors[4] = described.config.actors[5]
    return described


def with_another_trainer(**args):
    described = changed()
    trainer = described.config.trainers[1]
    described.config.trainers[1] = trainer.model_copy(update=args)
    return described


def test_members_that_cannot_take_over_from_one_another_are_named():
    (mistake,) = mistakes(without_evaluation())
    assert "no actor with is_evaluation: true has an agent of the policy 'policy_0'" in mistake
    trainer = changed().config.trainers[1].trainer
    other = trainer.model_copy(update={"type_": "mappo"})
    found = mistakes(with_another_trainer(trainer=other))
    assert any("'policy_0' and 'policy_1' have different trainers" in each for each in found)


def test_a_worker_that_does_not_evaluate_is_named():
    described = changed()
    worker = described.config.actors[-1]
    described.config.actors[-1] = worker.model_copy(update={"is_evaluation": False})
    assert any("give the actor worker is_evaluation=True" in each for each in mistakes(described))


def test_hyperparameters_are_those_of_a_trainer_and_of_the_manager(tmp_path):
    described = with_another_trainer()
    trial_of(described, tmp_path).write()
    told = yaml.safe_load((tmp_path / "population0.yaml").read_text())["initial_hyperparams"]
    assert json.dumps(told["policy_1"]) == json.dumps(
        {
            "episode_len": 128,
            "rollouts_per_batch": 4,
            "passes": 10,
            "minibatches": 4,
            "initial_learning_rate": 3e-4,
        }
    )
