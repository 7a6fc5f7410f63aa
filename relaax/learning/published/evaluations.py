"""The scores of evaluations, by the learner's steps."""

import threading
from collections import deque

from relaax.algorithm_base import Evaluations, Metrics
from relaax.learning.published.parameters import PublishedParameters
from relaax.metrics import EVALUATION_REWARD_AFTER, EVALUATION_REWARD_OF

#: So many of the latest scores are kept; learners ask several times a second.
MOST_SCORES = 10_000


class EvaluationLog(Metrics):
    """Passes scalars on to ``metrics``, and keeps scores of versions for the learner.

    A score is kept with the learner's step at which the version was published. Many threads may
    call it at once.
    """

    def __init__(self, metrics: Metrics, parameters: PublishedParameters) -> None:
        self._metrics = metrics
        self._parameters = parameters
        self._lock = threading.Lock()
        self._scores: deque[tuple[int, float]] = deque(maxlen=MOST_SCORES)
        self._count = 0

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep the score if it is one of a version that is known, and pass it on."""
        iteration = None if x is None else self._iteration(name, int(x))
        if iteration is not None:
            with self._lock:
                self._scores.append((iteration, float(y)))
                self._count += 1
        self._metrics.scalar(name, y, x)

    def _iteration(self, name: str, x: int) -> int | None:
        """Return the learner's step that a scalar is a score of; None if it is none."""
        if name == EVALUATION_REWARD_AFTER:  # none of a learner that has gone back since
            return x if x <= self._parameters.iteration else None
        return self._parameters.iteration_of(x) if name == EVALUATION_REWARD_OF else None

    def after(self, count: int) -> Evaluations:
        """Return the scores that came after the first ``count``."""
        with self._lock:
            new = self._count - count if count <= self._count else self._count
            scores = list(self._scores)[-new:] if new else []
            return Evaluations(self._count, scores)
