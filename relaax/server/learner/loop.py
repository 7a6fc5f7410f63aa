"""Samples, learns, publishes and saves, until the training is over."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Learner, NewValues, ParameterLink
from relaax.errors import LearningDiverged, ParameterServerAway, TokenRefused
from relaax.parameters.driver import Driver
from relaax.processes.stop_signal import Stop
from relaax.replay.mixed import PacedSource, SampleSource
from relaax.replay.replay import NotReady
from relaax.server.learner.prefetcher import Prefetcher
from relaax.server.learner.publishing import PublishClock, require_finite
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import WaitReport
from relaax.telemetry.throttled_log import RepeatedWarning

#: The phases of the loop, one after the other.
PHASES = ("fetch", "learn", "publish")

_log = logging.getLogger(__name__)

#: How long one wait for a batch takes, before it is looked whether the training is over.
_WAIT_S = 0.2

#: A learner whose rollouts wait for its version publishes it again, after so long without a batch:
#: a parameter server that has started again may have an older one.
_REPUBLISH_S = 5.0

#: How often ``tend`` is called.
_TEND_S = 1.0


class LearnerMeasurements:
    """Times of the learner's loop, once an interval of ``metrics``. For the loop's thread alone.

    A load is the share of all time that a phase takes, in percent. Since the phases do not overlap
    their loads are 100 together, at most.
    """

    def __init__(
        self, metrics: IntervalMetrics, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._means = metrics
        self._clock = clock
        self._updated_at = clock()
        #: Seconds of each phase, updates, and items in them, since the start.
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.updates = self.items = 0

    def go_on_from(self, before: "LearnerMeasurements") -> None:
        """Add what another loop of this process has done before to the totals."""
        for name, seconds in before.seconds.items():
            self.seconds[name] += seconds
        self.updates += before.updates
        self.items += before.items

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure what is done inside, which is one of ``PHASES``."""
        began = self._clock()
        try:
            yield
        finally:
            seconds = self._clock() - began
            self.seconds[name] += seconds
            self._means.add(f"learner/{name} time", seconds)
            self._means.per_second(f"learner/{name} load", 100 * seconds)

    def add(self, name: str, value: float) -> None:
        """Add a value; what is stored is the mean."""
        self._means.add(name, value)

    def updated(self, items: int) -> None:
        """Count an update, which was made of so many items of the replay."""
        now = self._clock()
        self._means.add("learner/iteration time", now - self._updated_at)
        self._updated_at = now
        self.updates += 1
        self.items += items
        self._means.per_second("learner/updates per second", 1)
        self._means.per_second("learner/items per second", items)

    def store_if_due(self) -> None:
        """Store what has been measured if the interval is over."""
        self._means.store_if_due()

    def store(self) -> None:
        """Store what has been measured."""
        self._means.store()


@dataclass(frozen=True)
class _Batch:
    """A batch, and the items that it was made of."""

    keys: npt.NDArray[np.int64]
    prepared: Any
    #: Seconds that drawing took, with the wait for enough items, and preparing.
    sample_s: float
    prepare_s: float


class LearnerLoop:
    """Drives a learner; see ``Learner``.

    ``save`` is called with the learner's count of steps every ``checkpoint_interval_s``, and at the
    end, if steps have been taken since the last checkpoint; ``tend`` once a second. ``depth``
    batches of each table are prepared ahead, but for those that are on policy. They are drawn on
    ``threads`` threads, and prepared one at a time. ``waits`` reports which table a step waits for,
    and why.
    """

    def __init__(
        self,
        learner: Learner,
        source: SampleSource,
        parameter_server: ParameterLink,
        publish_clock: PublishClock,
        metrics: IntervalMetrics,
        save: Callable[[int], None],
        checkpoint_interval_s: float,
        first_iteration: int = 0,
        depth: int = 2,
        threads: int = 1,
        tend: Callable[[], object] = lambda: None,
        waits: WaitReport | None = None,
    ) -> None:
        self._learner = learner
        self._source = source
        self._parameter_server = parameter_server
        self._driver = Driver(learner, parameter_server, parameter_server, loses=True)
        self._publish_clock = publish_clock
        #: Why nothing is published.
        self._complaint = RepeatedWarning(_log)
        #: How long it did what; any thread may look.
        self.measured = LearnerMeasurements(metrics)
        self._save = save
        self._checkpoint_interval_s = checkpoint_interval_s
        self._depth = depth
        self._threads = threads
        self._preparing = threading.Lock()
        self._tend = tend
        self._waits = waits
        #: The batches of the next step that are there, and why others are not, by table.
        self._gathered: dict[str, _Batch] = {}
        self._why_not: dict[str, str] = {}
        #: When something is to be done again.
        self._tend_at = self._save_at = self._published_at = 0.0
        #: Steps that were taken, and those of the last checkpoint.
        self.iteration = self._saved_iteration = first_iteration

    def run(self, stop: Stop, is_over: Callable[[], bool]) -> None:
        """Learn until ``stop`` is set or the training ``is_over``; then publish and save.

        What an algorithm's own code raises is raised here, when what was reached has been saved.
        LearningDiverged where there is nothing left that could be.
        """
        self.begin()
        try:
            with ExitStack() as resources:
                ahead = self._prefetchers(resources)
                while not (stop.wait(0) or is_over()):
                    self._learn_from(ahead)
                    self._do_what_is_due()
        except LearningDiverged:
            raise
        except Exception:
            try:
                self._save_or_warn()
            except LearningDiverged as diverged:
                _log.warning("no checkpoint was saved: %s", diverged)
            raise
        self.finish()

    def begin(self) -> None:
        """Publish what there is; what drives the learner itself calls ``take_step`` then."""
        self._tend_at = time.monotonic()
        self._save_at = self._tend_at + self._checkpoint_interval_s
        self._publish()

    def take_step(self) -> bool:
        """Take one step in this thread, if its batches are there now; return whether they were.

        What is due, such as a checkpoint, is done as well.
        """
        batches = self._gather(lambda table: self._fetch(table, 0.0))
        if batches is not None:
            self._step(batches)
        self.measured.store_if_due()
        self._do_what_is_due()
        return batches is not None

    def finish(self) -> None:
        """Save and publish what was learnt."""
        self._save_what_is_new()
        self.measured.store()
        self._publish()

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if now >= self._tend_at:
            self._tend_at = now + _TEND_S
            self._tend()
        if now >= self._save_at:
            self._save_at = now + self._checkpoint_interval_s
            self._save_or_warn()

    def _prefetchers(self, resources: ExitStack) -> dict[str, Prefetcher[_Batch]]:
        """Return what draws ahead, by table; ``resources`` will close it."""
        return {
            table: resources.enter_context(
                closing(Prefetcher(partial(self._fetch, table), self._depth, self._threads))
            )
            for table, each in self._learner.inputs.items()
            if not each.is_on_policy
        }

    def _learn_from(self, ahead: Mapping[str, Prefetcher[_Batch]]) -> None:
        """Take one step, if its batches are ready or become so."""
        with self.measured.phase("fetch"):
            batches = self._gather(
                lambda table: ahead[table].get(_WAIT_S) if table in ahead else self._fetch(table)
            )
        if batches is None:
            self._report_wait(self._why_not_yet())
            if self._learner.is_on_policy and time.monotonic() > self._published_at + _REPUBLISH_S:
                self._publish()
        else:
            depths = [each.depth for each in ahead.values()]
            self.measured.add("learner/batches ready", min(depths, default=0))
            self._step(batches)
        self.measured.store_if_due()

    def _gather(self, get: Callable[[str], _Batch | None]) -> dict[str, _Batch] | None:
        """Return a batch of each table, by ``get``; None if one is not there.

        The others are kept for the next call.
        """
        for table in self._learner.inputs:
            batch = self._gathered.get(table) or get(table)
            if batch is None:
                return None
            self._gathered[table] = batch
        gathered, self._gathered = self._gathered, {}
        return gathered

    def _why_not_yet(self) -> str:
        """Return why a batch is not there; its table is named where there are several."""
        table = next(name for name in self._learner.inputs if name not in self._gathered)
        why = self._why_not.get(table, "no batch is ready")
        return why if len(self._learner.inputs) == 1 else f"{table}: {why}"

    def _report_wait(self, reason: str) -> None:
        """Report why there is no step now; "" after one."""
        if self._waits is not None:
            self._waits.note(reason)

    def _fetch(self, table: str, timeout_s: float = _WAIT_S) -> _Batch | None:
        """Draw a batch and prepare it; None if there are not enough items in time."""
        asked, wanted = time.perf_counter(), self._learner.inputs[table]
        if wanted.is_on_policy and isinstance(self._source, PacedSource):
            self._source.at_version(table, self.iteration)
        try:
            sample = self._source.sample(table, wanted.batch_size, timeout_s)
        except NotReady as error:
            self._why_not[table] = str(error)
            return None
        sample_s = time.perf_counter() - asked
        with self._preparing:
            began = time.perf_counter()
            prepared = wanted.prepare(sample)
            return _Batch(sample.keys, prepared, sample_s, time.perf_counter() - began)

    def _step(self, batches: Mapping[str, _Batch]) -> None:
        with self.measured.phase("learn"):
            result = self._driver.learn({table: each.prepared for table, each in batches.items()})
        has_learnt = result.updates > 0
        self.iteration += has_learnt
        self._report_wait("" if has_learnt else "the batches that come teach nothing")
        self.measured.add("learner/sample time", sum(each.sample_s for each in batches.values()))
        self.measured.add("learner/prepare time", sum(each.prepare_s for each in batches.values()))
        for name, term in result.terms.items():
            self.measured.add(f"learner/{name}", term)
        for table, priorities in result.priorities.items():
            self._source.update_priorities(table, batches[table].keys, priorities)
        if self._learner.is_on_policy or self._publish_clock.is_due(self.iteration):
            with self.measured.phase("publish"):
                self._publish()
        self.measured.updated(sum(len(each.keys) for each in batches.values()))

    def _publish(self) -> None:
        values = self._learner.values()
        require_finite(values, self.iteration)
        try:
            for policy, vector in values.items():
                update = NewValues(vector, self.iteration)
                self._learner.published(policy, self._parameter_server.push(update, policy).version)
            self._complaint.forget()
        except (ParameterServerAway, TokenRefused) as error:  # what is published next is newer
            self._complaint.say(str(error))
        self._publish_clock.note(self.iteration)
        self._published_at = time.monotonic()

    def _save_what_is_new(self) -> None:
        if self.iteration != self._saved_iteration:
            self._save(self.iteration)
            self._saved_iteration = self.iteration

    def _save_or_warn(self) -> None:
        try:
            self._save_what_is_new()
        except LearningDiverged:
            raise
        except Exception:  # learning goes on: at the next interval the disk may have room again
            _log.exception("no checkpoint of the learner was saved")
