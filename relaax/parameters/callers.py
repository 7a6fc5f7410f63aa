"""Callers of a parameter server: their admission, calls, answers and environments."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Phase
from relaax.errors import ParameterServerAway
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics

FloatVector = npt.NDArray[np.float32]

#: A caller that has not asked for so long is gone: RLX servers ask twice a second, learners more
#: often.
LATELY_S = 5.0

#: The places of a holder that has not asked for so long are free.
LEASE_S = 30.0

#: How often the gate looks whether all calls are out. A process that is stopped and goes on later
#: has lost one of these intervals, and not the whole deadline.
_LOOK_S = 0.1


class Gate:
    """Lets calls in until it is closed. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_closed = False
        #: Whether it waits no more for calls that are inside.
        self._has_given_up = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside; ParameterServerAway where the gate is closed.

        A call that leaves after ``close`` has given up raises it, too: it may not be saved.
        """
        with self._changed:
            if self._is_closed:
                raise _stops()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                is_late = self._has_given_up
                self._inside -= 1
                self._changed.notify_all()
        if is_late:
            raise _stops()

    def close(self, deadline_s: float) -> int:
        """Let no more in, wait until all are out, and return the number of calls still inside.

        Each call that leaves may prolong the deadline by a tenth of a second.
        """
        left_s = deadline_s
        with self._changed:
            self._is_closed = True
            while self._inside and left_s > 0:
                if not self._changed.wait(min(_LOOK_S, left_s)):
                    left_s -= _LOOK_S
            self._has_given_up = self._inside > 0
            return self._inside


def _stops() -> ParameterServerAway:
    return ParameterServerAway("the parameter server is about to stop")


class _Told(NamedTuple):
    phase: Phase
    at: float


class Listeners:
    """Remembers the phase that each caller was answered with last. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By caller; the latest callers at the end.
        self._told: OrderedDict[str, _Told] = OrderedDict()

    def tell(self, caller: str, phase: Phase) -> None:
        """Take note that a caller is answered with a phase."""
        with self._lock:
            self._told[caller] = _Told(phase, self._clock())
            self._told.move_to_end(caller)
            self._forget()

    def all_know(self, phase: Phase) -> bool:
        """Return whether all callers of the last seconds were answered with this phase."""
        with self._lock:
            self._forget()
            return all(told.phase is phase for told in self._told.values())

    def _forget(self) -> None:
        oldest = self._clock() - LATELY_S
        while self._told and next(iter(self._told.values())).at < oldest:
            self._told.popitem(last=False)


class Places:
    """Gives each environment the smallest number that no other one has. For several threads.

    A holder, an RLX server or an actor, names all environments that it serves, by numbers of its
    own, and asks again now and then.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By holder: when it has asked last, and its environments' places.
        self._heard_at: dict[int, float] = {}
        self._held: dict[int, dict[int, int]] = {}

    def of(self, holder: int, environments: Sequence[int]) -> list[int]:
        """Return the places of ``environments``; all other places of the holder are free now."""
        with self._lock:
            self._heard_at[holder] = self._clock()
            self._forget()
            before = self._held.pop(holder, {})
            kept = {each: before[each] for each in environments if each in before}
            taken = {place for places in self._held.values() for place in places.values()}
            taken.update(kept.values())
            self._held[holder] = kept
            free = 0
            for each in environments:
                if each in kept:
                    continue
                while free in taken:
                    free += 1
                kept[each] = free
                taken.add(free)
            return [kept[each] for each in environments]

    def _forget(self) -> None:
        oldest = self._clock() - LEASE_S
        for holder in [each for each, at in self._heard_at.items() if at < oldest]:
            del self._heard_at[holder]
            self._held.pop(holder, None)


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
