"""The loop that watches over a training: progress, checkpoints, and the end."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from relaax.algorithm_base import ParameterServerBase, Phase, RefusesCalls, RunningParameterServer
from relaax.errors import CheckpointError
from relaax.parameters.process.progress import StepRate, TrainingProgress, shown_return
from relaax.parameters.process.return_curve import ReturnCurve
from relaax.parameters.process.training_figures import TrainingFigures
from relaax.parameters.sender_totals import SenderTotals
from relaax.processes.periodic_tasks import Task, begin_tasks, do_due
from relaax.processes.stop_signal import Stop
from relaax.telemetry.live_lines import StatePrinter
from relaax.telemetry.operators import SaveRecord
from relaax.telemetry.throttled_log import in_words

_log = logging.getLogger(__name__)

#: Seconds between two checks of the training.
CHECK_INTERVAL_S = 0.5

#: Seconds between two measurements of the steps per second.
RATE_INTERVAL_S = 2.0

#: How long the end of a training is announced before the port is closed, at least. RLX servers ask
#: for the phase twice a second.
CLOSING_PHASE_S = 2.0

#: The same at most, where a server that has asked lately has not heard it: it may start again.
LONGEST_CLOSING_PHASE_S = 15.0

#: How often it is looked whether all have heard it.
HEARD_INTERVAL_S = 0.1

#: How long a call that has begun may take when the port is closed.
CLOSE_GRACE_S = 1.0

#: Saving published values takes this part of the time at most.
PUBLISHED_SHARE = 0.1

#: After a failure it is tried again no sooner.
PUBLISHED_AGAIN_S = 30.0

#: Pauses between the attempts to save the last checkpoint.
LAST_SAVE_RETRY_DELAYS_S = (1.0, 3.0)


class EndOfTraining(Enum):
    """Why a training ended, in the words that are printed."""

    SIGNAL = "stopped by a signal"
    STEPS = "the required number of steps is done"
    RETURN = "the mean return has reached its goal"
    #: Of a training in one process, which ends with the environment's program.
    PROGRAM = "the environment's program has ended"
    ASKED_STEPS = "as many steps are done as were asked for"

    @property
    def is_final(self) -> bool:
        """Whether there is nothing more to learn: the next start would end at once."""
        return self in (EndOfTraining.STEPS, EndOfTraining.RETURN)


class TrainingMonitor:
    """The main loop of the parameter-server process. Other threads answer the workers meanwhile.

    A training ends when the algorithm reports that it is over, when the mean return of ``figures``
    reaches ``goal_return`` (if omitted, no return ends it), or at a signal. A checkpoint is saved
    every ``checkpoint_interval_s`` seconds, and at the end; between them the values that a learner
    has published are saved, no more often than every ``published_interval_s`` seconds. With
    ``keeps_serving`` the values are served after the end, until a signal comes. ``curve`` keeps the
    mean return beside the checkpoints, and ``senders`` whose steps were counted. ``missing`` names
    a shard that is away: then the training does not end, since the last checkpoint needs it.
    """

    def __init__(
        self,
        parameter_server: ParameterServerBase,
        bridge: RunningParameterServer,
        figures: TrainingFigures,
        senders: SenderTotals,
        *,
        goal_return: float | None = None,
        checkpoint_interval_s: float,
        published_interval_s: float = 1.0,
        keeps_serving: bool = False,
        curve: ReturnCurve | None = None,
        missing: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._parameter_server = parameter_server
        self._bridge = bridge
        self._figures = figures
        self._senders = senders
        self._goal_return = goal_return
        self._checkpoint_interval_s = checkpoint_interval_s
        self._published_interval_s = published_interval_s
        self._keeps_serving = keeps_serving
        self._curve = curve
        self._missing = missing
        #: How saving goes.
        self.saves = SaveRecord(checkpoint_interval_s)
        last_t = parameter_server.max_global_step()
        self._last_t = None if last_t is None or not math.isfinite(last_t) else int(last_t)
        self._printer = StatePrinter()
        self._began_with = parameter_server.global_t()
        self._rate = StepRate(self._began_with)
        self._steps_per_s = 0.0

    def run(self, stop: Stop) -> EndOfTraining:
        """Watch the training until it is over or ``stop`` is set; then save, and close the port.

        Exceptions of the algorithm's own code are raised when the training is saved.
        """
        try:
            end = self._train_or_save(stop)
            self.finish(end)
            if end.is_final:
                self._announce_the_end(stop)
        finally:
            self._bridge.stop(CLOSE_GRACE_S)
        return end

    def begin(self) -> None:
        """Let the intervals begin now; a driver of the training itself calls ``check`` then."""
        self._publishing = Task(self._published_interval_s, self._save_published)
        self._tasks = [
            Task(RATE_INTERVAL_S, self._measure_rate),
            Task(self._checkpoint_interval_s, self._save_if_any_or_warn),
            self._publishing,
        ]
        begin_tasks(self._tasks)

    def check(self) -> EndOfTraining | None:
        """Show the progress, save if it is time, and return why the training is over, if it is."""
        self._note_return()
        self._look_for_a_standstill()
        if self._printer.is_due():
            self._printer.show(self.progress())
        if not self._missing():
            if self._parameter_server.training_is_over():
                return EndOfTraining.STEPS
            if self._return_is_reached():
                return EndOfTraining.RETURN
        do_due(self._tasks)
        return None

    def finish(self, end: EndOfTraining) -> None:
        """Learn no more, save, and say why the training has ended."""
        self._stop_training(end.is_final)
        if end.is_final:  # after a signal, workers wait for the next start
            self._bridge.set_phase(Phase.SERVING if self._keeps_serving else Phase.CLOSING)
        self._note_return()
        if self._has_something_to_save(end):
            self._save_last_checkpoint()
        self._printer.close(replace(self.progress(), seconds_left=None, standstill=""))
        print(self._summary(end), flush=True)
        self._plot_return()

    def progress(self) -> TrainingProgress:
        """Return how the training is; any thread may ask."""
        global_t, last_t = self._parameter_server.global_t(), self._last_t
        figures = self._figures
        returns, evaluations = figures.returns, figures.evaluations
        is_early = self._goal_return is not None and not returns.is_full()
        return TrainingProgress(
            global_t=global_t,
            steps_per_s=self._steps_per_s,
            mean_return=returns.mean(),
            episodes=returns.size(),
            needed_episodes=returns.window if is_early else None,
            mean_evaluation=evaluations.mean(),
            evaluations=evaluations.size(),
            checkpoints=self.saves.saved,
            last_t=last_t,
            goal_return=self._goal_return,
            environments=figures.environments.total(),
            connections=figures.connections.total(),
            seconds_left=self._seconds_left(global_t),
            standstill=figures.standstill.said,
        )

    def _announce_the_end(self, stop: Stop) -> None:
        """Wait until all know that the training is over, or serve its result until stopped."""
        if self._keeps_serving:
            stop.wait()
            return
        until = time.monotonic() + LONGEST_CLOSING_PHASE_S
        stops = stop.wait(CLOSING_PHASE_S)
        while not stops and not self._bridge.all_know() and time.monotonic() < until:
            stops = stop.wait(HEARD_INTERVAL_S)

    def _train_or_save(self, stop: Stop) -> EndOfTraining:
        try:
            return self._train(stop)
        except Exception:  # an algorithm's own code raises any: its result is not lost
            self._stop_training(is_final=False)
            if self._has_taken_steps():
                _log.error("the parameter server failed; saving what was reached")
                self._save_or_warn()
            raise

    def _stop_training(self, is_final: bool) -> None:
        """Let nothing change any more; later calls are for the next start, where there will be one.

        Else it is answered, and ignored: all hear that the training is over.
        """
        if not is_final and isinstance(self._bridge, RefusesCalls):
            _or_log("refuse_calls", self._bridge.refuse_calls)
        _or_log("stop_training", self._parameter_server.stop_training)

    def _train(self, stop: Stop) -> EndOfTraining:
        self.begin()
        while not stop.wait(CHECK_INTERVAL_S):
            end = self.check()
            if end is not None:
                return end
        return EndOfTraining.SIGNAL

    def _measure_rate(self) -> None:
        self._steps_per_s = self._rate.update(self._parameter_server.global_t())
        figures = self._figures
        figures.scalar("server/steps per second", self._steps_per_s)
        figures.scalar("server/environments", figures.environments.total())
        figures.scalar("server/connections", figures.connections.total())

    def _look_for_a_standstill(self) -> None:
        server, figures = self._parameter_server, self._figures
        connected = figures.environments.total()
        figures.standstill.look(server.global_t(), server.updates(), connected)

    def _return_is_reached(self) -> bool:
        goal, returns = self._goal_return, self._figures.returns
        mean = returns.mean()
        return goal is not None and mean is not None and returns.is_full() and mean >= goal

    def _save(self) -> None:
        with self.saves.saving(), self._senders.recording():
            self._parameter_server.save_checkpoint()
        if self._curve is not None:
            self._curve.save()

    def _save_published(self) -> None:
        """Save the values that a learner has published, and choose when to do so again."""
        if not self._has_taken_steps():
            return
        began, pause_s = time.monotonic(), self._published_interval_s
        try:
            with self._senders.recording():
                self._parameter_server.save_published()
        except Exception as error:  # the next checkpoint, or the next time, may succeed
            _log.warning("published values are not saved: %s", in_words(error))
            pause_s = max(pause_s, PUBLISHED_AGAIN_S)
        took_s = time.monotonic() - began
        self._publishing.interval_s = max(pause_s, took_s / PUBLISHED_SHARE)

    def _has_taken_steps(self) -> bool:
        """Return False before the first step.

        A checkpoint of nothing would keep a corrected configuration from starting.
        """
        return self._parameter_server.global_t() != self._began_with

    def _has_something_to_save(self, end: EndOfTraining) -> bool:
        """Return False if it was stopped before the first step."""
        return end.is_final or self._has_taken_steps()

    def _save_last_checkpoint(self) -> None:
        """Save, and try again after a failure: no later checkpoint would hold the result."""
        for delay_s in LAST_SAVE_RETRY_DELAYS_S:
            try:
                return self._save()
            except Exception as error:  # the last attempt, below, raises
                _log.warning("saving failed (%s); trying again in %g s", in_words(error), delay_s)
                time.sleep(delay_s)
        return self._save()

    def _save_if_any_or_warn(self) -> None:
        """Save, unless no step was taken since the start."""
        if self._has_taken_steps():
            self._save_or_warn()
        else:
            self.saves.note_current()

    def _save_or_warn(self) -> None:
        where = self._parameter_server.checkpoint_location()
        try:
            self._save()
        except CheckpointError as error:  # training goes on: later a shard is back, or S3
            _log.error("no checkpoint was saved in %s: %s", where, error)
        except Exception:  # the same: at the next interval the disk may have room again
            _log.exception("no checkpoint was saved in %s", where)

    def _plot_return(self) -> None:
        where = None if self._curve is None else self._curve.draw()
        if where is not None:
            print(where, flush=True)

    def _note_return(self) -> None:
        mean = self._figures.returns.mean()
        if self._curve is not None and mean is not None:
            self._curve.add(self._parameter_server.global_t(), mean)

    def _seconds_left(self, global_t: int) -> int | None:
        """Return how long the rest takes; None while no steps come."""
        if self._last_t is None or self._steps_per_s == 0:
            return None
        return self._rate.seconds_for(self._last_t - global_t)

    def _summary(self, end: EndOfTraining) -> str:
        """Return why the training ended, the goal that it missed, and where its result is."""
        said = f"{end.value}: global step {self._parameter_server.global_t():,}; "
        if not self._has_something_to_save(end):
            return f"{said}no step was taken, and no checkpoint was saved"
        goal, mean = self._goal_return, self._figures.returns.mean()
        if end is EndOfTraining.STEPS and goal is not None:
            said += f"the mean return is {shown_return(mean, goal)}, not {goal:g} as was the goal; "
        if end is EndOfTraining.STEPS and self._began_with >= (self._last_t or float("inf")):
            said += "a larger max_global_step lets it go on (docs/operations.md, Schedules); "
        where = self._parameter_server.checkpoint_location()
        return f"{said}weights and optimiser: checkpoint in {where}"


def _or_log(name: str, stop: Callable[[], None]) -> None:
    """Call ``stop``, which ends changes; log an exception: the result is saved all the same."""
    try:
        stop()
    except Exception:  # an algorithm's own code raises any
        _log.exception("%s failed: what is saved now may still change", name)
