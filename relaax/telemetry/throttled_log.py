"""Lines of the log that would come again and again: few of a kind, news alone, tracebacks once."""

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

#: So many failures are known again; tracebacks of any after them are logged each time.
_MOST_FAILURES = 1024

#: One line of a kind is written in so many seconds, after a first burst.
EVERY_S = 10.0

#: So many lines of a kind may come at once, unless the line has a limit of its own.
AT_ONCE = 20


class FailureLog:
    """Keeps which failures ``log`` has shown in this process. Many threads may call it at once."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._shown: set[tuple[str, ...]] = set()

    def add(self, what: str, error: Exception) -> None:
        """Log that ``what`` failed with the traceback; one line if it has failed in the same way.

        Failures are the same if they are of one type and come from one line of code, which was
        reached in the same way: two mistakes that end in one line of a library are two failures.
        """
        failure = _identity(error)
        with self._lock:  # until the failure is in the log
            if failure in self._shown:
                self._log.error("%s failed again: %s", what, in_words(error))
                return
            self._log.error("%s failed", what, exc_info=error)
            if len(self._shown) < _MOST_FAILURES:
                self._shown.add(failure)


def in_words(error: Exception) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _identity(error: Exception) -> tuple[str, ...]:
    """Return the common key of equal failures."""
    # Without their order and number: an error that is raised again has more frames each time.
    frames = traceback.walk_tb(error.__traceback__)
    way = sorted({f"{frame.f_code.co_filename}:{line}" for frame, line in frames})
    return (f"{type(error).__module__}.{type(error).__qualname__}", *way)


class RepeatedWarning:
    """Writes a warning to ``log`` unless the last one was the same; again after ``every_s``."""

    def __init__(
        self,
        log: logging.Logger,
        every_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._said = ""
        self._said_at = 0.0

    def say(self, text: str) -> None:
        """Log ``text``, unless it was the last one, and within ``every_s``."""
        now = self._clock()
        if text != self._said or now - self._said_at >= self._every_s:
            self._said, self._said_at = text, now
            self._log.warning("%s", text)

    def forget(self) -> bool:
        """Let the next warning be new: meanwhile all was well; return whether there was one."""
        had_said, self._said = bool(self._said), ""
        return had_said


def of_kind(name: str, at_once: int = AT_ONCE) -> dict[str, object]:
    """Return the ``extra`` of a log call, so that few lines of its kind are written.

    There must be few kinds: nothing from a stranger may be in ``name``.
    """
    return {"kind": name, "at_once": at_once}


@dataclass
class _Kind:
    #: Until when the written lines use up the limit.
    used_until: float = float("-inf")
    left_out: int = 0


class RateLimit(logging.Filter):
    """Lets a first burst of each kind of lines pass, then one in ``EVERY_S``.

    A line that follows omitted ones has their number. Lines without a kind pass. Each process
    counts its own lines. Handlers of one logger may share it: a record that comes again passes, or
    does not, as it did the first time. For several threads.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        name = getattr(record, "kind", None)
        if name is None:
            return True
        if not hasattr(record, "passes"):
            record.__dict__["passes"] = self._passes(name, record)
        return bool(record.__dict__["passes"])

    def _passes(self, name: str, record: logging.LogRecord) -> bool:
        ahead_s = (getattr(record, "at_once", AT_ONCE) - 1) * EVERY_S
        with self._lock:
            kind, now = self._kinds.setdefault(name, _Kind()), self._clock()
            if now < kind.used_until - ahead_s:
                kind.left_out += 1
                return False
            kind.used_until = max(kind.used_until, now) + EVERY_S
            left_out, kind.left_out = kind.left_out, 0
        if left_out:
            record.msg, record.args = (
                "%s (%d more since the last such message)",
                (record.getMessage(), left_out),
            )
        return True
