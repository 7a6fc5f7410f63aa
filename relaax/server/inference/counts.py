"""Counts questions, environments and evaluations."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from relaax.telemetry.histograms import SECONDS, SIZES, Histogram
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.live_lines import Figure
from relaax.telemetry.metrics import Metrics, NullMetrics
from relaax.telemetry.operators import Metric, counter
from relaax.telemetry.operators.families import histogram


class InferenceCounts:
    """Counts what was answered since the start; means go to ``metrics``. For several threads."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, metrics: Metrics | None = None
    ) -> None:
        self._clock = clock
        self._means = IntervalMetrics(metrics or NullMetrics(), clock=clock)
        self._lock = threading.Lock()
        self._questions = self._actions = self._evaluations = 0
        self._waits, self._times, self._sizes = map(Histogram, (SECONDS, SECONDS, SIZES))
        #: Of the last live line: when it was, and what was counted.
        self._shown = clock(), 0, 0

    def evaluated(self, waits: Sequence[float], environments: int, seconds: float) -> None:
        """Count an evaluation of ``seconds`` for so many environments.

        ``waits`` are the seconds that each of its questions has waited.
        """
        with self._lock:
            self._questions += len(waits)
            self._actions += environments
            self._evaluations += 1
            for wait in waits:
                self._waits.add(wait)
            self._times.add(seconds)
            self._sizes.add(environments)
            self._means.per_second("inference/actions per second", environments)
            self._means.add("inference/actions per evaluation", environments)
            self._means.store_if_due()

    def metrics(self) -> Iterable[Metric]:
        """Yield the counts for operators."""
        yield counter("inference_questions", "Questions that were answered", self._questions)
        yield counter("inference_actions", "Actions that were chosen", self._actions)
        yield counter("inference_evaluations", "Evaluations of the network", self._evaluations)
        for name, means, counted in (
            ("queue_wait_seconds", "From a question to its evaluation", self._waits),
            ("inference_seconds", "One evaluation of the network", self._times),
            ("batch_size", "Environments that were answered with one evaluation", self._sizes),
        ):
            yield histogram(name, means, counted.bounds, counted.values())

    def figures(self) -> list[Figure]:
        """Return the actions in a second, and in an evaluation, since the last time."""
        with self._lock:
            now, actions, evaluations = self._clock(), self._actions, self._evaluations
        at, actions_before, evaluations_before = self._shown
        self._shown = now, actions, evaluations
        new, seconds = actions - actions_before, max(now - at, 1e-9)
        per_evaluation = new / max(1, evaluations - evaluations_before)
        return [
            Figure(round(new / seconds), "actions per second"),
            Figure(round(per_evaluation, 1), "actions per evaluation"),
        ]
