"""Slices of gradients that workers have sent, and that are not applied yet."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from relaax.algorithm_base import FloatVector

#: A worker that has sent nothing for so long is gone, and will not commit what it has staged.
KEPT_S = 600.0


@dataclass
class _Worker:
    """What one has staged, by the gradients' numbers, and when the last of it came."""

    slices: dict[int, FloatVector] = field(default_factory=dict)
    came: float = 0.0

    def forget_before(self, sequence: int) -> None:
        """Forget gradients before this one."""
        for old in [each for each in self.slices if each < sequence]:
            del self.slices[old]


class Staging:
    """The slices of each worker that are not settled; many threads may call it at once.

    A worker's gradients are committed in their order, so that those before one that is taken never
    will be.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: The one that has sent nothing for the longest is first.
        self._workers: OrderedDict[int, _Worker] = OrderedDict()

    def __len__(self) -> int:
        """Return how many slices are here; a worker that is known without any counts as one."""
        with self._lock:
            return sum(max(len(own.slices), 1) for own in self._workers.values())

    def put(self, worker: int, sequence: int, gradient: FloatVector, settled: int) -> None:
        """Keep a slice; forget the worker's before ``settled``, and workers that are gone."""
        now = self._clock()
        with self._lock:
            own = self._workers.setdefault(worker, _Worker())
            own.forget_before(settled)
            own.slices[sequence], own.came = gradient, now
            self._workers.move_to_end(worker)
            while next(iter(self._workers.values())).came < now - KEPT_S:
                self._workers.popitem(last=False)

    def take(self, worker: int, sequence: int) -> FloatVector | None:
        """Return a slice, and forget it and those before it; None if it is not here."""
        with self._lock:
            own = self._workers.get(worker)
            if own is None or sequence not in own.slices:
                return None
            found = own.slices[sequence]
            own.forget_before(sequence + 1)
            if not own.slices:
                del self._workers[worker]
            return found

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._workers.clear()
