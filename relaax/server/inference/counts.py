"""Counts questions, environments and evaluations."""

import threading
import time
from collections.abc import Callable, Iterable

from relaax.telemetry.live_lines import Figure
from relaax.telemetry.operators import Metric, counter


class InferenceCounts:
    """Counts what was answered since the start. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._questions = self._actions = self._evaluations = 0
        #: Of the last live line: when it was, and what was counted.
        self._shown = clock(), 0, 0

    def evaluated(self, questions: int, environments: int) -> None:
        """Count an evaluation that has answered so many questions, of so many environments."""
        with self._lock:
            self._questions += questions
            self._actions += environments
            self._evaluations += 1

    def metrics(self) -> Iterable[Metric]:
        """Yield the counts for operators."""
        yield counter("inference_questions", "Questions that were answered", self._questions)
        yield counter("inference_actions", "Actions that were chosen", self._actions)
        yield counter("inference_evaluations", "Evaluations of the network", self._evaluations)

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
