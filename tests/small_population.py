"""A population of two policies, whose learners often take what the other one has learnt."""

import subprocess
from pathlib import Path
from typing import Any

import yaml
from processes import COMMANDS, REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "experiments" / "pbt.py"
#: Those of four that are left, and the learning rates that they begin with.
RATES = {"policy_0": 1e-4, "policy_1": 1e-5}


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
        trainer["trainer"]["args"].update(passes=1, rollouts_per_batch=2, max_global_step=10**7)
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
    scheduling = experiment["scheduling"]
    for kind, own in workers.items():
        scheduling[kind] = {"count": len(own), "scheduling": {}}
    return {**experiment, **workers}


def write_small_population(path: Path) -> None:
    """Write the experiment as YAML."""
    shown = subprocess.run(
        [COMMANDS / "relaax-experiment", "show", EXAMPLE, "-e", "pbt"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    path.write_text(yaml.safe_dump(smaller(yaml.safe_load(shown))))
