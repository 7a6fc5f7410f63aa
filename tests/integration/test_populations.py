"""A population goes on, whichever of its processes is killed."""

import json
import os
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import COMMANDS, REPOSITORY, Process, wait_for

from relaax.parameters.database import DatabaseName, DatabaseRoot, Type

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

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


def pid_of(folder: Path, name: str) -> int:
    record = json.loads((folder / "run.json").read_text())
    return int(record["workers"][name]["pid"])


def tagged_versions(folder: Path, policy: str) -> dict[str, int]:
    root = DatabaseRoot(folder / "policies" / policy / "database", Type.FILESYSTEM)
    with closing(root.reader(DatabaseName("pbt", "one", policy))) as database:
        return {tag: version for tag, version in database.list_tags().items() if tag != "latest"}


def test_a_population_goes_on_whichever_process_is_killed(tmp_path: Path) -> None:
    shown = subprocess.run(
        [COMMANDS / "relaax-experiment", "show", EXAMPLE, "-e", "pbt"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "pbt.yaml").write_text(yaml.safe_dump(smaller(yaml.safe_load(shown))))
    words = ["relaax-experiment", "run", "pbt.yaml", "-f", "one", "--restart"]
    run = Process("experiment", [str(COMMANDS / words[0]), *words[1:]], tmp_path)
    folder = tmp_path / "training" / "experiments" / "pbt" / "one"

    def exploits() -> int:
        return len(re.findall(r"population0 .* has the parameters of", run.output()))

    def another(what: str) -> None:
        before = exploits()
        wait_for(lambda: exploits() > before, f"an exploit after {what}")

    try:
        another("the start")
        tagged = wait_for(lambda: tagged_versions(folder, "policy_0"), "a version with a tag")
        for name in ("population0", "policy_0-trainer0", "policy0", "policy_0-ps", "policy_1-ps"):
            os.kill(pid_of(folder, name), signal.SIGKILL)
            run.says(rf"{name} started .*\n(.*\n)*.*{name} started")
            another(f"kill -9 of {name}")
        assert tagged.items() <= tagged_versions(folder, "policy_0").items()
        run.signal(signal.SIGINT)
        assert run.wait() == 130
        lines = (folder / "population0" / "exploits.csv").read_text().splitlines()
        assert len(lines) - 1 >= 6
    finally:
        run.kill_family()
