"""When to try again after a failure, and when to give up."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from relaax.client.failure import Failure

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with jitter.

    The pause before attempt k + 1 is ``initial_s * factor ** (k - 1)``, at most ``max_s``, less a
    random part of up to ``jitter`` (0 to 1) of itself, so that many clients do not return at once.
    """

    initial_s: float = 0.5
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 0.5
    attempts: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.initial_s <= self.max_s:
            raise ValueError(f"0 <= initial_s <= max_s, got {self.initial_s} and {self.max_s}")
        if self.factor < 1:
            raise ValueError(f"factor must be at least 1, is {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be between 0 and 1, is {self.jitter}")
        if self.attempts < 1:
            raise ValueError(f"attempts must be at least 1, is {self.attempts}")

    def pauses(self, rng: random.Random) -> Iterator[float]:
        """Yield pauses in seconds, without end; the caller counts the attempts."""
        pause_s = self.initial_s
        while True:
            yield pause_s * (1 - self.jitter * rng.random())
            pause_s = min(pause_s * self.factor, self.max_s)


class RetryPolicy:
    """Counts connections that failed in a row, and pauses after each.

    A connection has failed when it could not be made, or was lost before it was of use: before an
    episode ended on it, and before it had lasted as long as the longest pause. After a useful
    connection the count starts anew, with a pause all the same: a server that keeps closing is not
    flooded.

    reconnect: how often to try again; None pauses after a loss, and does not try again. wait:
    called with each pause in seconds; when it returns true, no further attempt follows.
    """

    def __init__(self, reconnect: Backoff | None, wait: Callable[[float], object]) -> None:
        self._backoff = reconnect or Backoff()
        self._tries_again = reconnect is not None
        self.wait = wait
        self._rng = random.Random()  # noqa: S311 - it spreads clients in time, it hides nothing
        self.start_anew()

    def start_anew(self) -> None:
        """Forget the failures: a connection was of use."""
        self._attempts = 0
        self._began = time.monotonic()
        self._pauses: Iterator[float] = self._backoff.pauses(self._rng)

    def has_lasted(self, seconds: float) -> bool:
        """Return whether a connection of ``seconds`` was of use, although no episode ended."""
        return seconds >= self._backoff.max_s

    def allows_after(self, failure: Failure) -> bool:
        """Return whether another attempt may follow ``failure``."""
        return self._tries_again and not failure.is_final

    def pause_after_loss(self, failure: Failure) -> None:
        """Wait after the loss of a connection that was of use; raise ``failure`` to stop."""
        self.start_anew()
        if self.wait(next(self._backoff.pauses(self._rng))):
            raise failure

    def pause_after_attempt(self, failure: Failure) -> None:
        """Wait after an attempt that failed; raise Failure when the attempts are used up."""
        self._attempts += 1
        if self._attempts == 1:
            self._began = time.monotonic()
            _log.warning("waiting for the RLX server: %s", failure.message)
        if self._attempts >= self._backoff.attempts or self.wait(next(self._pauses)):
            seconds = time.monotonic() - self._began
            message = f"gave up after {self._attempts} attempts over {seconds:.1f} s"
            self.start_anew()
            message = f"{message}: {failure.message}"
            raise Failure(message, failure.code, gave_up=True) from failure
