"""Lines of the log that strangers can cause: a few at once, and then one now and then."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

#: One line of a kind is written in so many seconds, after those that may come at once.
EVERY_S = 10.0

#: So many lines of a kind may come at once, unless the line says otherwise.
AT_ONCE = 20


def of_kind(name: str, at_once: int = AT_ONCE) -> dict[str, object]:
    """Return what a line is logged with, as ``extra``, so that few of its kind are written.

    There must be few kinds: nothing of what a stranger sends may be in ``name``.
    """
    return {"kind": name, "at_once": at_once}


@dataclass
class _Kind:
    #: Until when the lines that were written use up what may be written.
    used_until: float = float("-inf")
    left_out: int = 0


class RateLimit(logging.Filter):
    """Lets pass, of the lines of a kind, those that may come at once, then one in ``EVERY_S``.

    A line that follows some that were left out says how many there were. Lines without a kind pass.
    Each process counts its own lines. Handlers of one logger may share it: a record that comes
    again passes, or does not, as it did the first time. For several threads.
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
