"""Metrics of a process in the runs that its workers have at Weights & Biases."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from relaax.configuration.wandb_runs import WandbRun, read_wandb_runs
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.training.wandb_log import WandbWriter


class WorkerRuns(Metrics):
    """Hands each scalar to the runs whose prefix its name has, without the prefix."""

    def __init__(self, runs: Sequence[tuple[str, WandbWriter]]) -> None:
        self._runs = runs

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """See Metrics."""
        for prefix, run in self._runs:
            if name.startswith(prefix):
                run.scalar(name.removeprefix(prefix), y, x)

    def update_config(self, values: Mapping[str, Any]) -> None:
        """Put values by their paths in the place of those that each run began with."""
        for _, run in self._runs:
            run.update_config(values)


def worker_runs(
    file: Path | None, resources: ExitStack, global_t: Callable[[], int] = lambda: 0
) -> WorkerRuns | None:
    """Begin the runs that a file describes; None without a file. ``resources`` end them.

    ConfigurationError for a file that is wrong, and as of ``WandbWriter``.
    """
    if file is None:
        return None
    begun = []
    for run in read_wandb_runs(file):
        writer = _writer(run, file.parent, global_t)
        resources.callback(writer.close)
        begun.append((run.metrics, writer))
    return WorkerRuns(begun)


def _writer(run: WandbRun, directory: Path, global_t: Callable[[], int]) -> WandbWriter:
    names = {"entity": run.entity, "group": run.group, "job_type": run.job_type}
    return WandbWriter(
        run.project, run.name, global_t, run.config, directory, names=names, option="--wandb-runs"
    )
