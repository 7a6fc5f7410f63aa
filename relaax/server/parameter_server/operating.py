"""What operators see of a parameter server."""

import threading
import time
from collections.abc import Callable, Iterable

from relaax.algorithm_base import ParameterServerBase
from relaax.metrics import CONNECTIONS_OF, ENVIRONMENTS_OF, OF_CLIENT, OF_EVALUATING_CLIENT, Metrics
from relaax.server.common.operators import counter, gauge
from relaax.server.common.operators.families import Metric, gauges
from relaax.server.parameter_server.progress import TrainingProgress

#: A value that has not been stored again for so long is not shown: it may not hold any more.
FORGOTTEN_AFTER_S = 300.0

#: Not shown: clients choose such names, or a worker's is part of them. Each name is a time series
#: that Prometheus keeps.
_WITHOUT = (OF_CLIENT, OF_EVALUATING_CLIENT, ENVIRONMENTS_OF, CONNECTIONS_OF)


class NewestScalars(Metrics):
    """Keeps the last value of each scalar, whoever stored it. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, tuple[float, float]] = {}

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep ``y`` in the place of the value before."""
        if not name.startswith(_WITHOUT):
            with self._lock:
                self._values[name] = (float(y), self._clock())

    def figures(self) -> Iterable[Metric]:
        """Return the values that were stored lately, by name."""
        oldest = self._clock() - FORGOTTEN_AFTER_S
        with self._lock:
            self._values = {
                name: (value, at) for name, (value, at) in self._values.items() if at >= oldest
            }
            values = {name: value for name, (value, _) in self._values.items()}
        means = "The newest value of each metric that TensorBoard shows"
        return [gauges("scalar", means, "name", values)]


def figures(parameter_server: ParameterServerBase, progress: TrainingProgress) -> Iterable[Metric]:
    """Yield how a training is; what is not known is left out."""
    yield gauge("global_step", "Environment steps of all agents together", progress.global_t)
    updates = parameter_server.updates()
    if updates is not None:
        yield counter("updates", "Updates of the parameters, of earlier starts too", updates)
    yield gauge("steps_per_second", "The same in the last seconds", progress.steps_per_s)
    for name, means, value in (
        ("last_global_step", "The global step at which the training is over", progress.last_t),
        ("mean_return", "Mean return of the latest episodes", progress.mean_return),
        ("goal_return", "The mean return at which the training is over", progress.goal_return),
        ("mean_evaluation", "Mean return of the latest evaluations", progress.mean_evaluation),
        ("training_environments", "Environments of all RLX servers", progress.environments),
        ("training_connections", "Connections of all RLX servers", progress.connections),
    ):
        if value is not None:
            yield gauge(name, means, value)
