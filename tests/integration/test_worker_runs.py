"""Each worker of an experiment has a run at Weights & Biases, in its offline mode for real."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import REPOSITORY, wait_for
from wandb_records import records, rows_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(500)]

EXAMPLE = REPOSITORY / "examples" / "experiments" / "evaluated.py"
PROGRAM = Path(sys.executable).parent / "relaax-experiment"


def test_workers_have_runs_with_their_names_configuration_and_metrics(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    shown = [PROGRAM, "show", str(EXAMPLE), "-e", "evaluated-remote"]
    text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    for before, after in (
        ("eval_games_per_version: 20", "eval_games_per_version: 1"),
        ("push_frequency_steps: 10", "push_frequency_steps: 1"),
        ("max_global_step: 60000", "max_global_step: 10000000"),
        ("- policy_name: default\n  trainer:", NAMED_TRAINER),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "runs.yaml").write_text(text)
    run = [PROGRAM, "run", "runs.yaml", "-f", "one", "--wandb"]
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_CACHE_DIR": str(tmp_path)}
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(run, cwd=tmp_path, stdout=output, env=environment) as running,
    ):
        try:
            said = "my_evaluation: version"
            wait_for(lambda: log.read_text().count(said) >= 2, "evaluations", 300)
        finally:
            running.terminate()  # each process ends its run
    folder = tmp_path / "training/experiments/evaluated-remote/one/runs"
    found = [list(records(path)) for path in folder.glob("wandb/offline-run-*/*.wandb")]
    runs = {
        id(each): next(record.run for record in each if record.WhichOneof("record_type") == "run")
        for each in found
    }
    names = Counter((run.job_type, run.display_name) for run in runs.values())
    assert names == {
        ("actor", "unnamed"): 3,
        ("policy", "default"): 1,
        ("teacher", "mine"): 1,
        ("eval_manager", "default"): 1,
    }
    for run in runs.values():
        project = "elsewhere" if run.job_type == "teacher" else "evaluated-remote"
        assert (run.project, run.run_group) == (project, "one")
    by_type = {runs[id(each)].job_type: each for each in found}
    assert config_of(runs[id(by_type["teacher"])])["trainer.args.max_global_step"] == 10_000_000
    assert config_of(runs[id(by_type["actor"])])["env.type_"] == "CartPole-v1"
    assert config_of(runs[id(by_type["eval_manager"])])["tag"] == "my_evaluation"
    assert "inference/actions_per_second" in metrics_of(by_type["policy"])
    assert any(name.startswith("learner/") for name in metrics_of(by_type["teacher"]))
    assert {"episode_return", "episode_length"} <= metrics_of(by_type["eval_manager"])
    of_actors = [metrics_of(each) for each in found if runs[id(each)].job_type == "actor"]
    assert sum("episode/reward" in names for names in of_actors) == 2
    assert sum("evaluation/reward" in names for names in of_actors) == 1


NAMED_TRAINER = """- worker_info:
    wandb_project: elsewhere
    wandb_job_type: teacher
    wandb_name: mine
  policy_name: default
  trainer:"""


def config_of(run: Any) -> dict[str, Any]:
    """Return the configuration of a run."""
    return {entry.key: json.loads(entry.value_json) for entry in run.config.update}


def metrics_of(found: list[Any]) -> set[str]:
    """Return the names of a run's metrics."""
    return {name for row in rows_of(found) for name in row}
