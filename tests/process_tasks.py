"""Tasks for environment processes; a new process must be able to import them."""

import os
import signal

from relaax.client.child_process import ProcessReport
from relaax.client.run_result import RunOutcome, RunResult
from relaax.client.simulator import EpisodeSummary


def plays(index: int, report: ProcessReport) -> RunResult:
    """Play one episode of ``index + 1`` steps."""
    report.on_connected()
    report.on_step(index + 1)
    report.on_episode(EpisodeSummary(float(index), index + 1, 0.5))
    return RunResult(RunOutcome.FINISHED, "1 episodes are over")


def exits(index: int, report: ProcessReport) -> RunResult:
    """End this process without a result."""
    os._exit(3)


def stays(index: int, report: ProcessReport) -> RunResult:
    """Connect, and go on until this process is ended."""
    report.on_connected()
    signal.pause()
    return RunResult(RunOutcome.FINISHED, "a signal came")


def stays_and_ignores_sigterm(index: int, report: ProcessReport) -> RunResult:
    """Connect, and go on until this process is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    report.on_connected()
    while True:
        signal.pause()
