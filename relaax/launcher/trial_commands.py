"""Commands for a trial that another shell runs: status, logs, stop."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from relaax.configuration.exit_status import FAILURE
from relaax.errors import ConfigurationError, did_you_mean_one_of
from relaax.launcher.engines.kubernetes import TRIAL, dns_name
from relaax.launcher.run_record import NAME, Process, RunRecord, how_it_ended, read_record, table
from relaax.launcher.runner import TIMED_OUT
from relaax.launcher.trial_log import TrialLog

#: Exit status of ``status`` where the trial does not run: as of services' commands.
IS_OVER = 3

#: How often the end of a trial is looked for.
_LOOK_S = 0.1

#: Exit statuses of runs that have not failed: the end, Ctrl-C, SIGTERM, the time-out.
ORDERLY = (0, 128 + signal.SIGINT, 128 + signal.SIGTERM, TIMED_OUT)


#: Ends pods as SIGTERM does, and leaves their storage.
_DELETE = "delete jobs,deployments"


@dataclass(frozen=True)
class TrialPlace:
    """A trial by its names, and its folder among those of all trials."""

    directory: Path
    experiment: str
    trial: str

    def __post_init__(self) -> None:
        for option, name in (("-e", self.experiment), ("-f", self.trial)):
            if "/" in name or name in ("", ".", ".."):
                raise ConfigurationError(f"{option}: needs a name without '/', not {name!r}")

    def __str__(self) -> str:
        return f"{self.experiment}/{self.trial}"

    @property
    def folder(self) -> Path:
        """The folder of the trial."""
        return (self.directory / self.experiment / self.trial).resolve()

    @property
    def record(self) -> Path:
        """The file with the state of its newest run."""
        return self.folder / NAME

    @property
    def log(self) -> Path:
        """The file with the output of all its processes."""
        return self.folder / "log"

    @property
    def targets(self) -> Path:
        """The file for Prometheus, which takes a pattern of files for one folder alone."""
        name = f"{quote(self.experiment, safe='')}@{quote(self.trial, safe='')}.json"
        return self.directory / "prometheus" / name

    @property
    def manifests(self) -> Path:
        """The folder of its manifests for Kubernetes."""
        return self.folder / "kubernetes"

    @property
    def name_in_kubernetes(self) -> str:
        """The label of its pods."""
        return dns_name(self.experiment, self.trial)

    def read(self, kubectl: str) -> RunRecord:
        """Return the record of its newest run; ConfigurationError where there is none.

        ``kubectl`` does the same for a trial in Kubernetes, whose pods are selected.
        """
        if self.record.exists():
            return read_record(self.record)
        if self.manifests.exists():
            raise ConfigurationError(
                f"{self} was written for Kubernetes: ask kubectl {kubectl} --selector "
                f"{TRIAL}={self.name_in_kubernetes}"
            )
        there = sorted(
            f"{path.parent.parent.name}/{path.parent.name}"
            for path in self.directory.glob(f"*/*/{NAME}")
        )
        known = f"; there are: {', '.join(there)}" if there else ""
        raise ConfigurationError(
            f"no trial {self} was run in {self.directory}{known}"
            + did_you_mean_one_of(str(self), there)
        )


def show_status(place: TrialPlace) -> int:
    """Print whether a trial and its processes run, and how far they are.

    Return 0 while it runs, 3 when it is over or was stopped, 1 when it has failed.
    """
    record = place.read("get jobs,deployments,pods")
    _require_here(place, record)
    launcher = record.launcher
    runs = launcher.running() is not None
    print(f"{place} {_state_of(record)} (pid {launcher.pid})")
    rows = [("process", "state", "pid", "since", "said")]
    for name, worker in record.workers.items():
        pid = f"{worker.pid or '-'}{' at ' if worker.host else ''}{worker.host}"
        rows.append((name, record.state_of(name), pid, str(worker.since), worker.said))
    print(table(rows))
    if runs:
        return 0
    return IS_OVER if launcher.status in ORDERLY else FAILURE


def show_logs(place: TrialPlace, worker: str | None, count: int | None, follow: bool) -> int:
    """Print the last ``count`` lines of a trial's log, and, to ``follow``, those of its run."""
    record = place.read("logs --prefix --tail=-1")
    if follow:
        _require_here(place, record)
    if worker is not None and worker not in record.workers:
        raise ConfigurationError(
            f"{place} has no process {worker!r}; there are: {', '.join(record.workers)}"
        )
    try:
        with closing(TrialLog(place.log, worker)) as log:
            for line in _lines(log, count, record if follow else None):
                print(line, flush=follow)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # as after | head
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return 0


def _lines(log: TrialLog, count: int | None, followed: RunRecord | None) -> Iterator[str]:
    yield from log.last(count)
    if followed is not None:
        launcher = followed.launcher
        yield from log.follow(lambda: launcher.running() is not None)


def stop_trial(place: TrialPlace, timeout_s: float) -> int:
    """End a trial as Ctrl-C does, wait, and say how its processes have ended.

    ConfigurationError where it does not run; 1 is returned where it runs on after ``timeout_s``.
    """
    record = place.read(_DELETE)
    _require_here(place, record)
    _ask_to_stop(place, record.launcher)
    until = time.monotonic() + timeout_s
    while record.launcher.running() is not None and time.monotonic() < until:
        time.sleep(_LOOK_S)
    if record.launcher.running() is not None:
        now = read_record(place.record)
        left = ", ".join(
            f"{name} (pid {worker.pid})"
            for name, worker in now.workers.items()
            if worker.status is None
        )
        print(
            f"{place} was told to stop, and runs on after {timeout_s:g} s: {left}", file=sys.stderr
        )
        return FAILURE
    ended = read_record(place.record)
    print(table((name, ended.state_of(name)) for name in ended.workers))
    print(f"{place} {_state_of(ended)}")
    return 0


def _ask_to_stop(place: TrialPlace, launcher: Process) -> None:
    running = launcher.running()
    try:
        if running is not None:
            running.terminate()
            return
    except psutil.AccessDenied as error:
        raise ConfigurationError(
            f"{place} may not be stopped: process {launcher.pid} belongs to another user"
        ) from error
    except psutil.NoSuchProcess:
        pass  # it has ended meanwhile
    raise ConfigurationError(f"{place} does not run: it {_state_of(place.read(_DELETE))}")


def _state_of(record: RunRecord) -> str:
    """Return in words since when a run goes on, or how it has ended."""
    launcher = record.launcher
    if launcher.status is not None:
        return f"{how_it_ended(launcher.status)} at {launcher.since}"
    if launcher.running() is not None:
        return f"runs since {launcher.since}"
    return f"was killed; it had begun at {launcher.since}"


def _require_here(place: TrialPlace, record: RunRecord) -> None:
    if not record.is_here:
        raise ConfigurationError(f"{place} was run on {record.host}: ask there")
