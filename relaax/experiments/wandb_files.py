"""The runs of an experiment's workers at Weights & Biases."""

from typing import Any

from relaax.configuration.wandb_runs import WandbRun, flattened
from relaax.experiments.workers import EvalManager, Worker
from relaax.experiments.written import NamedExperiment

UNNAMED = "unnamed"


def run_of(
    worker: Worker, job_type: str, policy: str | None, experiment: NamedExperiment, trial: str
) -> WandbRun:
    """Return the run of a worker; its ``worker_info`` overrides the names."""
    info = worker.worker_info
    metrics = f"{worker.tag}/" if isinstance(worker, EvalManager) else ""
    return WandbRun(
        entity=info.wandb_entity,
        project=info.wandb_project or experiment.name,
        group=info.wandb_group or trial,
        job_type=info.wandb_job_type or job_type,
        name=info.wandb_name or policy or UNNAMED,
        config=_config(worker),
        metrics=metrics,
    )


def _config(worker: Worker) -> dict[str, Any]:
    """Return the fields of a worker by their paths, without URLs, which may have passwords."""
    found = flattened(worker.model_dump(mode="json"))
    return {path: each for path, each in found.items() if not path.endswith("database_mongodb")}


def file_of_runs(*runs: WandbRun) -> dict[str, Any]:
    """Return the content of a process's file."""
    return {"runs": [run.model_dump(mode="json") for run in runs]}
