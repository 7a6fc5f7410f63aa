"""Keeps a parameter server going: checkpoints, progress, the end of the training."""

import logging
import threading
import time
from dataclasses import dataclass
from enum import Enum

from relaax.algorithm_base import Metrics, ParameterServerBase, Phase, RunningParameterServer
from relaax.server.parameter_server.metrics import EpisodeReturns
from relaax.server.parameter_server.progress import Progress, ProgressPrinter, StepRate

_log = logging.getLogger(__name__)

TICK_S = 0.5

#: How often the rate of steps is measured.
RATE_INTERVAL_S = 2.0

#: How long the end of a training is announced before the port is closed: RLX servers ask twice
#: a second.
FAREWELL_S = 2.0

CLOSE_GRACE_S = 1.0

#: Between attempts to save the result of a training.
LAST_SAVE_PAUSES_S = (1.0, 3.0)


@dataclass(frozen=True)
class Goal:
    """When to stop, beside the algorithm's own end."""

    #: Mean return to reach; None to train until the algorithm's end.
    mean_return: float | None
    checkpoint_interval_s: float
    #: Serve values after the training until a signal comes.
    keeps_serving: bool


class Outcome(Enum):
    """Why the loop ended."""

    SIGNAL = "stopped by a signal"
    STEPS = "the required number of steps is done"
    RETURN = "the mean return has reached its goal"


class TrainingMonitor:
    """The loop of the parameter-server process, beside the threads that answer workers."""

    def __init__(
        self,
        parameter_server: ParameterServerBase,
        bridge: RunningParameterServer,
        returns: EpisodeReturns,
        metrics: Metrics,
        goal: Goal,
    ) -> None:
        self._parameter_server = parameter_server
        self._bridge = bridge
        self._returns = returns
        self._metrics = metrics
        self._goal = goal
        self._printer = ProgressPrinter()
        self._rate = StepRate(parameter_server.global_t())
        self._steps_per_s = 0.0
        self._checkpoints = 0

    def run(self, stop: threading.Event) -> Outcome:
        """Watch over the training until it is over or ``stop`` is set; then save and close."""
        try:
            outcome = self._train(stop)
            self._parameter_server.stop_training()
            if outcome is not Outcome.SIGNAL:  # after a signal, workers wait for the next start
                self._bridge.set_phase(Phase.SERVING if self._goal.keeps_serving else Phase.CLOSING)
            self._save_at_last(stop)
            self._printer.close(self._progress())
            print(self._summary(outcome), flush=True)
            if outcome is not Outcome.SIGNAL:
                stop.wait(None if self._goal.keeps_serving else FAREWELL_S)
        finally:
            self._bridge.stop(CLOSE_GRACE_S)
        return outcome

    def _train(self, stop: threading.Event) -> Outcome:
        now = time.monotonic()
        save_at, rate_at = now + self._goal.checkpoint_interval_s, now + RATE_INTERVAL_S
        while not stop.wait(TICK_S):
            now = time.monotonic()
            if now >= rate_at:
                rate_at = now + RATE_INTERVAL_S
                self._measure_rate()
            self._printer.show(self._progress())
            if self._parameter_server.training_is_over():
                return Outcome.STEPS
            if self._return_is_reached():
                return Outcome.RETURN
            if now >= save_at:
                save_at = now + self._goal.checkpoint_interval_s
                self._save_or_warn()
        return Outcome.SIGNAL

    def _measure_rate(self) -> None:
        self._steps_per_s = self._rate.update(self._parameter_server.global_t())
        self._metrics.scalar("steps per second", self._steps_per_s)

    def _return_is_reached(self) -> bool:
        goal, mean = self._goal.mean_return, self._returns.mean()
        return goal is not None and mean is not None and self._returns.is_full() and mean >= goal

    def _save(self) -> None:
        self._parameter_server.save_checkpoint()
        self._checkpoints += 1

    def _save_at_last(self, stop: threading.Event) -> None:
        """Save, and try again where it fails: nothing will be saved after this."""
        for pause_s in LAST_SAVE_PAUSES_S:
            try:
                return self._save()
            except Exception:  # the last attempt, below, raises
                _log.exception("saving failed; trying again in %g s", pause_s)
                time.sleep(pause_s)
        return self._save()

    def _save_or_warn(self) -> None:
        try:
            self._save()
        except Exception:  # training goes on: the next interval may find the disk free again
            _log.exception(
                "no checkpoint was saved in %s", self._parameter_server.checkpoint_location()
            )

    def _progress(self) -> Progress:
        return Progress(
            global_t=self._parameter_server.global_t(),
            steps_per_s=self._steps_per_s,
            mean_return=self._returns.mean(),
            episodes=self._returns.size(),
            checkpoints=self._checkpoints,
        )

    def _summary(self, outcome: Outcome) -> str:
        return (
            f"{outcome.value}: global step {self._parameter_server.global_t():,}; "
            f"checkpoint in {self._parameter_server.checkpoint_location()}"
        )
