"""Fetches parameters by a rule, and never waits long for them."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from relaax.algorithm_base import FloatVector, PublishedInfo, Values, ValueSource, Version
from relaax.errors import BridgeError, ConfigurationError

_log = logging.getLogger(__name__)

#: How long a fetch waits for its answer; Surreal's own.
TIMEOUT_S = 2.0


FetchMode: TypeAlias = Literal["step", "episode", "second"]


@dataclass(frozen=True)
class PullRule:
    """Fetch the parameters before each ``interval``-th step, or episode, or every so many seconds.

    They are fetched once at the start besides: Surreal's ``fetch_parameter_mode`` and
    ``fetch_parameter_interval``. With seconds they are fetched before the next step.
    """

    mode: FetchMode = "step"
    interval: float = 10

    def __post_init__(self) -> None:
        if self.mode not in get_args(FetchMode):
            raise ConfigurationError(
                f"parameters are fetched by 'step', 'episode' or 'second', not by {self.mode!r}"
            )
        least = 0 if self.mode == "second" else 1
        if self.interval < least:
            raise ConfigurationError(
                f"parameters are fetched every {least} or more {self.mode}s, not every "
                f"{self.interval:g}"
            )

    def tracker(self) -> "PeriodicTracker | ClockTracker":
        """Return the count of steps, of episodes, or of seconds, that says when to fetch."""
        if self.mode == "second":
            return ClockTracker(self.interval)
        return PeriodicTracker(int(self.interval))


class ClockTracker:
    """Says yes at the first count that comes ``interval`` seconds or more after the last yes."""

    def __init__(self, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._clock = clock
        self._since = clock()

    def track_increment(self) -> bool:
        """Return whether it is time."""
        now = self._clock()
        if now - self._since < self._interval:
            return False
        self._since = now
        return True


class PeriodicTracker:
    """Counts, and says so at each ``interval``-th count: with 3, at 3, 6 and 9."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._count = 0

    def track_increment(self) -> bool:
        """Count one more; return whether it is one of those."""
        self._count += 1
        return self._count % self._interval == 0


class ParameterClient:
    """Asks ``source`` for the newest parameters, and never waits long.

    An answer that is not there within ``timeout_s`` counts as none: the actor goes on with the
    parameters that it has, which are those of version ``known`` at the start. While such an answer
    is outstanding, no fetch waits again. Calls run on a thread of the client's own, which ends with
    it.
    """

    def __init__(
        self, source: ValueSource, timeout_s: float = TIMEOUT_S, known: Version | None = None
    ) -> None:
        self._source = source
        #: May be changed at any time.
        self.timeout_s = timeout_s
        #: Of the parameters that came last.
        self._known = known
        #: Those that came with the information alone, for the next fetch of parameters.
        self._unused: FloatVector | None = None
        #: True is a call; False ends the thread.
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Values | BridgeError] = queue.SimpleQueue()
        self._is_outstanding = False
        #: Whether the parameter server has answered the last fetch.
        self.alive = True
        self._thread = threading.Thread(target=self._run, name="parameter client", daemon=True)
        self._thread.start()

    def fetch_parameter_with_info(self) -> Values | None:
        """Return the newest parameters, with their vector if they are others than before.

        None where the parameter server is away.
        """
        values = self._ask()
        if values is None:
            return None
        vector, self._unused = self._unused, None
        return replace(values, vector=vector)

    def fetch_info(self) -> PublishedInfo | None:
        """Return how the newest parameters were published; None where there are none."""
        values = self._ask()
        return None if values is None else values.info

    def close(self) -> None:
        """End the thread, when its call has been answered."""
        self._calls.put(False)

    def _ask(self) -> Values | None:
        """Return an answer; None if there is none in time."""
        wait_s = 0.0 if self._is_outstanding else self.timeout_s
        if not self._is_outstanding:
            self._is_outstanding = True
            self._calls.put(True)
        try:
            answer = self._answers.get(timeout=wait_s)
        except queue.Empty:
            self._note(is_alive=False, reason="the parameter server does not answer")
            return None
        self._is_outstanding = False
        if isinstance(answer, BridgeError):
            self._note(is_alive=False, reason=str(answer))
            return None
        self._note(is_alive=True, reason="")
        if answer.version != self._known or answer.vector is not None:
            self._known, self._unused = answer.version, answer.vector
        return answer

    def _note(self, *, is_alive: bool, reason: str) -> None:
        """Log changes only."""
        if self.alive and not is_alive:
            _log.warning("acting with the parameters before: %s", reason)
        elif is_alive and not self.alive:
            _log.warning("the parameter server answers again")
        self.alive = is_alive

    def _run(self) -> None:
        while self._calls.get():
            try:
                self._answers.put(self._source.pull(self._known))
            except BridgeError as error:
                self._answers.put(error)
            except ValueError as error:  # the bridge has been closed
                self._answers.put(BridgeError(str(error)))
