"""Tasks for environment processes; a new process must be able to import them."""

import os
import signal
import threading

from relaax.client.child_process import ProcessReport
from relaax.client.simulator import EpisodeSummary, RunOutcome, RunResult


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


def fails_once(index: int, report: ProcessReport) -> RunResult:
    """Fail after a step and an episode; the second time play one more."""
    report.on_connected()
    report.on_step()
    if not report.restarts:
        report.on_episode(EpisodeSummary(1.0, 1, 0.5))
        raise OSError("the game is gone")
    message = f"restart {report.restarts} after {report.episodes_before} episodes"
    return RunResult(RunOutcome.FINISHED, message)


def dies_once(index: int, report: ProcessReport) -> RunResult:
    """Kill this process after a step; the second time finish."""
    report.on_step()
    if not report.restarts:
        os.kill(os.getpid(), signal.SIGKILL)
    return RunResult(RunOutcome.FINISHED, "done")


def hangs_once(index: int, report: ProcessReport) -> RunResult:
    """Wait for ever in an environment's step; the second time finish."""
    report.on_step()
    if not report.restarts:
        report.environment_begins()
        threading.Event().wait()
    return RunResult(RunOutcome.FINISHED, "done")


def hangs_and_cannot_be_interrupted(index: int, report: ProcessReport) -> RunResult:
    """The same, of an environment that does not let signals through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    return hangs_once(index, report)


def fails(index: int, report: ProcessReport) -> RunResult:
    """Fail after a step, each time."""
    report.on_step()
    raise OSError(f"game {index} is gone")


def loses_one(index: int, report: ProcessReport) -> RunResult:
    """Lose one of its environments, and finish with the others; process 0 loses all."""
    report.on_step()
    report.on_lost("environment 3 failed")
    report.on_doubt("it may be wrong")
    if index == 0:
        raise OSError("the game is gone")
    return RunResult(RunOutcome.TRAINING_OVER, "the training is over")
