"""When to try again after a failure, and when to give up."""

import logging
import random
import time
from collections.abc import Callable, Iterator

from relaax.client.backoff import Backoff
from relaax.client.failure import Failure

_log = logging.getLogger(__name__)


class Persistence:
    """Counts connections that failed in a row, and pauses after each.

    A connection has failed when it could not be made, or was lost before it was of use: before an
    episode ended on it, or it lasted as long as the longest pause. After one that was of use the
    count starts anew; there is a pause all the same, so that a server that keeps closing is not
    flooded.
    """

    def __init__(self, backoff: Backoff, wait: Callable[[float], object]) -> None:
        self._backoff = backoff
        self._wait = wait
        self._rng = random.Random()  # noqa: S311 - it spreads clients in time, it hides nothing
        self._connected_at = time.monotonic()
        self._was_of_use = False
        self._start_anew()

    def connected(self) -> None:
        """Take note of a new connection."""
        self._connected_at = time.monotonic()
        self._was_of_use = False

    def episode_ended(self) -> None:
        """Take note that the connection was of use."""
        if not self._was_of_use:
            self._was_of_use = True
            self._start_anew()

    def pause_after_loss(self, failure: Failure) -> None:
        """Wait after a connection was lost; raise Failure when it is enough."""
        if not (self._was_of_use or self._has_lasted()):
            self.pause_after_attempt(failure)
            return
        self._start_anew()
        if self._wait(next(self._backoff.pauses(self._rng))):
            raise failure

    def pause_after_attempt(self, failure: Failure) -> None:
        """Wait after an attempt that failed; raise Failure when it is enough."""
        self._attempts += 1
        if self._attempts == 1:
            self._began = time.monotonic()
            _log.warning("waiting for the RLX server: %s", failure.message)
        if self._attempts >= self._backoff.attempts or self._wait(next(self._pauses)):
            seconds = time.monotonic() - self._began
            message = f"gave up after {self._attempts} attempts over {seconds:.1f} s"
            self._start_anew()
            raise Failure(f"{message}: {failure.message}", failure.code) from failure

    def _has_lasted(self) -> bool:
        return time.monotonic() - self._connected_at >= self._backoff.max_s

    def _start_anew(self) -> None:
        self._attempts = 0
        self._began = time.monotonic()
        self._pauses: Iterator[float] = self._backoff.pauses(self._rng)
