"""Logs what an algorithm's code raises: the traceback once, however often it happens."""

import logging
import threading
import traceback
from typing import TypeAlias

#: Of a frame: its file and line.
_Place: TypeAlias = tuple[str, int | None]


class FailureLog:
    """Keeps which failures ``log`` has shown; many threads may call it at once."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._shown: set[tuple[type[Exception], frozenset[_Place]]] = set()
        self._lock = threading.Lock()

    def add(self, what: str, error: Exception) -> None:
        """Log ``what`` failed with the traceback; one line, where that has been logged before.

        Failures are the same if they are of one type and come from one line of code, which was
        reached in the same way: two mistakes that end in one line of a library are two failures.
        """
        if self._is_new(error):
            self._log.error("%s failed", what, exc_info=error)
        else:
            self._log.error("%s failed again: %s", what, in_words(error))

    def _is_new(self, error: Exception) -> bool:
        # Without their order and number: an error that is raised again has more frames each time.
        frames = traceback.walk_tb(error.__traceback__)
        way = frozenset((frame.f_code.co_filename, line) for frame, line in frames)
        with self._lock:
            before = len(self._shown)
            self._shown.add((type(error), way))
            return len(self._shown) > before


def in_words(error: Exception) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
