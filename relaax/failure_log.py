"""Logs what an algorithm's code raises: the traceback once, however often it happens."""

import logging
import threading
import traceback

#: So many failures are known again; tracebacks of any after them are logged each time.
_MOST_FAILURES = 1024


class FailureLog:
    """Keeps which failures ``log`` has shown in this process. Many threads may call it at once."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._shown: set[tuple[str, ...]] = set()

    def add(self, what: str, error: Exception) -> None:
        """Log ``what`` failed with the traceback; one line, where that has been logged before.

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
    """Return what failures that are the same have in common."""
    # Without their order and number: an error that is raised again has more frames each time.
    frames = traceback.walk_tb(error.__traceback__)
    way = sorted({f"{frame.f_code.co_filename}:{line}" for frame, line in frames})
    return (f"{type(error).__module__}.{type(error).__qualname__}", *way)
