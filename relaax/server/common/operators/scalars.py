"""The newest values of the metrics that TensorBoard shows."""

import threading
import time
from collections.abc import Callable, Iterable

from relaax.metrics import CONNECTIONS_OF, ENVIRONMENTS_OF, OF_CLIENT, OF_EVALUATING_CLIENT, Metrics
from relaax.server.common.operators.families import Metric, gauges

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
