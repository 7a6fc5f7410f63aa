"""What operators and Weights & Biases see of a learner that may be made again in its process."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from typing import Any

from relaax.configuration import LearnerOptions
from relaax.configuration.wandb_runs import flattened
from relaax.parameters.training_watch import TrainingWatch
from relaax.replay.process.replay_metrics import replay_figures
from relaax.server.learner.experience import Experience
from relaax.server.learner.loop import LearnerLoop, LearnerMeasurements
from relaax.telemetry.operators import (
    Metric,
    OperatorPort,
    SaveRecord,
    counter,
    gauge,
    operator_listener,
)
from relaax.telemetry.operators.families import counters
from relaax.telemetry.operators.port import Check, away
from relaax.telemetry.training import worker_runs

#: Where a worker's configuration has the keys of the algorithm's section.
_ARGS = "trainer.args"


def figures(loop: LearnerLoop) -> Iterable[Metric]:
    """Yield what the loop has done."""
    done = loop.measured
    yield gauge("learner_iteration", "Steps of the learner, of earlier starts too", loop.iteration)
    yield counter("learner_updates", "Batches that were learnt from", done.updates)
    yield counter("learner_items", "Items of the replay in them", done.items)
    yield counters(
        "learner_phase_seconds",
        "Time of the learner's loop, by what it did",
        "phase",
        dict(done.seconds),
    )


def _starts() -> str:
    return "it is starting"


class LearnerShown:
    """The HTTP port and the run of a learner's process, until ``resources`` close them.

    A learner that is made again, by a new order of its population's manager, goes on at the same
    port and in the same run; its own counters go on, too.
    """

    def __init__(self, options: LearnerOptions, resources: ExitStack) -> None:
        self._operators = OperatorPort(operator_listener(options.http_bind))
        resources.enter_context(closing(self._operators))
        #: Takes the metrics of each learner, if there is a run.
        self.runs = worker_runs(options.wandb_runs, resources)
        self.saves = SaveRecord(options.checkpoint_interval)
        self._measured: LearnerMeasurements | None = None
        self._fault: Check = _starts
        self._figures: Callable[[], list[Metric]] = list
        self._operators.ready_if(self._check)
        self._operators.show(self._read)
        self._operators.begin()

    @property
    def was_begun(self) -> bool:
        """Whether this process has had a learner before."""
        return self._measured is not None

    def _check(self) -> str | None:
        return self._fault()

    def _read(self) -> list[Metric]:
        return self._figures()

    def show(self, loop: LearnerLoop, experience: Experience, *, saves: bool) -> None:
        """Show a learner in the place of the one before; ``saves``: its checkpoints, too."""
        if self._measured is not None:
            loop.measured.go_on_from(self._measured)
        self._measured = loop.measured
        replay = replay_figures(experience.stats)
        counted = self.saves.figures if saves else list
        self._figures = lambda: [*figures(loop), *replay(), *counted()]

    def begin(self, watch: TrainingWatch, hyperparameters: Mapping[str, Any]) -> None:
        """Take note that the learner has started, with these keys in the place of its section's."""
        self._fault = away(watch.silence_s)
        if self.runs is not None and hyperparameters:
            self.runs.update_config(flattened(dict(hyperparameters), _ARGS))

    def end(self) -> None:
        """Hold the last figures, and nothing of the learner."""
        self._fault = _starts
        last = self._figures()
        self._figures = lambda: last
