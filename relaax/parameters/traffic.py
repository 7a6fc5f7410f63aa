"""Counts a parameter server's calls, and the bytes of the vectors in them."""

import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics

FloatVector = npt.NDArray[np.float32]


class _Late(Metrics):
    """The metrics of a service, which may make them later."""

    def __init__(self, metrics: Callable[[], Metrics]) -> None:
        self._of_service = metrics

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        self._of_service().scalar(name, y, x)


class Traffic:
    """Calls and bytes by second, stored once a second; many threads may call it at once.

    ``metrics`` returns where they are stored.
    """

    def __init__(
        self, metrics: Callable[[], Metrics], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = IntervalMetrics(_Late(metrics), clock=clock)
        self._lock = threading.Lock()

    def received(self, kind: str, vector: FloatVector | None = None) -> None:
        """Count a call of a ``kind``, ``publishes`` for instance, and the bytes of its vector."""
        with self._lock:
            self._rates.per_second(f"parameter server/{kind} per second", 1)
            if vector is not None:
                self._rates.per_second("parameter server/bytes in per second", vector.nbytes)
            self._rates.store_if_due()

    def sent(self, vector: FloatVector | None) -> None:
        """Count the bytes of a reply's vector."""
        if vector is not None:
            with self._lock:
                self._rates.per_second("parameter server/bytes out per second", vector.nbytes)
