"""The scores of evaluations, by the versions that were evaluated."""

from collections.abc import Callable

from relaax.metrics import EVALUATION_REWARD_OF, Metrics


class EvaluationScores(Metrics):
    """Passes scalars on to ``metrics``, and calls ``on_score`` with versions and their scores.

    Many threads may call it at once, and so they call ``on_score``.
    """

    def __init__(self, metrics: Metrics, on_score: Callable[[int, float], object]) -> None:
        self._metrics = metrics
        self._on_score = on_score

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Take the score if it is one, and pass it on."""
        if name == EVALUATION_REWARD_OF and x is not None:
            self._on_score(int(x), float(y))
        self._metrics.scalar(name, y, x)
