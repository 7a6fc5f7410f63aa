"""Slices of gradients that workers have sent, and not committed yet."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from relaax.algorithm_base import FloatVector

#: A worker that has sent nothing for so long is gone, and will not commit what it has staged.
KEPT_S = 600.0


class Staging:
    """The latest slice of each worker; many threads may call it at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By worker: the number of its gradient, when it came, and the slice. The oldest are first.
        self._slices: OrderedDict[int, tuple[int, float, FloatVector]] = OrderedDict()

    def put(self, worker: int, sequence: int, gradient: FloatVector) -> None:
        """Keep a slice in the place of the worker's last; forget those of workers that are gone."""
        now = self._clock()
        with self._lock:
            self._slices[worker] = sequence, now, gradient
            self._slices.move_to_end(worker)
            while next(iter(self._slices.values()))[1] < now - KEPT_S:
                self._slices.popitem(last=False)

    def take(self, worker: int, sequence: int) -> FloatVector | None:
        """Return a slice, which is forgotten then; None if it is not here."""
        with self._lock:
            found = self._slices.get(worker)
            if found is None or found[0] != sequence:
                return None
            return self._slices.pop(worker)[2]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._slices.clear()
