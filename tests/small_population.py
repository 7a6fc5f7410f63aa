"""Populations of two policies, whose learners often take what the other one has learnt."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml
from processes import COMMANDS, REPOSITORY

from relaax.parameters.database import DatabaseName, DatabaseRoot, Type

EXAMPLES = REPOSITORY / "examples" / "experiments"
#: Those of four that are left, and the learning rates that they begin with.
RATES = {"policy_0": 1e-4, "policy_1": 1e-5}
#: Args of trainers that have versions soon, and are not over before the test is.
FAST = {"passes": 1, "rollouts_per_batch": 2, "max_global_step": 10**7}


def smaller(experiment: dict[str, Any]) -> dict[str, Any]:
    """Two policies that often exploit one another, one of which is evaluated by a policy worker."""
    (manager,) = experiment["population_manager"]
    manager["population"] = list(RATES)
    manager["initial_hyperparams"] = {
        name: {"initial_learning_rate": rate} for name, rate in RATES.items()
    }
    rules = {"ready_interval": 3, "episodes": 2, "truncation_ratio": 0.5}
    manager["population_algorithm"]["args"].update(rules)
    trainers = [each for each in experiment["trainers"] if each["policy_name"] in RATES]
    for trainer in trainers:
        trainer["trainer"]["args"].update(FAST)
        trainer["push_frequency_steps"] = 5
    actors = [
        each
        for each in experiment["actors"]
        if each["inference_streams"][0]["policy_name"] in RATES
    ]
    remote, policy = "eval_policy_0", trainers[0]["policy"]
    next(each for each in actors if each.get("is_evaluation"))["inference_streams"] = [remote]
    worker = {"policy_name": "policy_0", "inference_stream": remote, "policy": policy}
    workers = {"actors": actors, "trainers": trainers, "policies": [worker]}
    return with_workers(experiment, workers)


def smaller_league(experiment: dict[str, Any]) -> dict[str, Any]:
    """A main agent, and an exploiter that often begins anew, whose versions play one seat."""
    (manager,) = experiment["population_manager"]
    manager["population_algorithm"]["args"]["learners"]["exploiter"]["reset_updates"] = 3
    for trainer in experiment["trainers"]:
        trainer["trainer"]["args"].update(FAST)
    actors = [experiment["actors"][number] for number in (0, 3, 5)]
    return with_workers(experiment, {"actors": actors})


def with_workers(experiment: dict[str, Any], workers: dict[str, list[Any]]) -> dict[str, Any]:
    """The experiment with other workers of some kinds."""
    for kind, own in workers.items():
        experiment["scheduling"][kind] = {"count": len(own), "scheduling": {}}
    return {**experiment, **workers}


def write_small_population(path: Path) -> None:
    """Write the experiment as YAML."""
    path.write_text(yaml.safe_dump(smaller(shown("pbt"))))


def write_small_league(path: Path) -> None:
    """Write the experiment as YAML."""
    path.write_text(yaml.safe_dump(smaller_league(shown("league"))))


def shown(name: str) -> dict[str, Any]:
    """Return an experiment of the examples."""
    found = subprocess.run(
        [COMMANDS / "relaax-experiment", "show", EXAMPLES / f"{name}.py", "-e", name],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    content: dict[str, Any] = yaml.safe_load(found)
    return content


def tagged_versions(trial: Path, policy: str) -> dict[str, int]:
    """Return the versions of a policy by their tags, but for the latest one."""
    root = DatabaseRoot(trial / "policies" / policy / "database", Type.FILESYSTEM)
    with closing(root.reader(DatabaseName("pbt", trial.name, policy))) as database:
        return {tag: version for tag, version in database.list_tags().items() if tag != "latest"}
