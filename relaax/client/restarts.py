"""When an environment that has failed is made again, and when it has failed too often."""

import time
from collections import deque
from collections.abc import Callable

from relaax.errors import RelaaxError

#: An environment that failed so often within so many seconds is not made again.
MOST_RESTARTS, WITHIN_S = 5, 600.0

#: The metric: how often environments of a connection were made again.
RESTARTS = "environment restarts"

#: The first pause; each one is twice as long as the one before.
_PAUSE_S = 0.5

#: How long an environment may take for a step or a start, by default (``--environment-timeout``).
TIMEOUT_S = 600.0


class EnvironmentHangs(RuntimeError):
    """An environment has not returned from a step, or from its start, in time."""


class FailedTooOften(RelaaxError):
    """An environment has failed again and again: it is lost, and not made again."""


class Restarts:
    """Counts the restarts of one environment, and gives the pause before the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at: deque[float] = deque(maxlen=MOST_RESTARTS)
        #: How often, in all.
        self.count = 0

    def next_pause_s(self, name: str, why: str) -> float:
        """Count another restart; return how long to wait before it.

        FailedTooOften, with the name of the environment and the reason, where it is one too many.
        """
        now = self._clock()
        while self._at and now - self._at[0] >= WITHIN_S:
            self._at.popleft()
        if len(self._at) == MOST_RESTARTS:
            raise FailedTooOften(
                f"{name} failed, and was made again {MOST_RESTARTS} times within {WITHIN_S:g} s "
                f"before: {why}"
            )
        self._at.append(now)
        self.count += 1
        return float(_PAUSE_S * 2 ** (len(self._at) - 1))


def in_words(error: BaseException) -> str:
    """Return an environment's exception in words."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def lost_message(error: FailedTooOften) -> str:
    """Return the message of a lost environment."""
    return f"{error}. It is not made again: it is lost, and the others play on"


def restart_message(name: str, why: str, pause_s: float, count: int) -> str:
    """Return the message of an environment that is made again."""
    return (
        f"{name} failed ({why}): its episode is given up, and it is made again in {pause_s:g} s "
        f"(restart {count}; {MOST_RESTARTS} within {WITHIN_S:g} s at most)"
    )
