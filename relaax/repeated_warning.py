"""A warning about what is tried again and again: logged when it says something new."""

import logging
import math
import time
from collections.abc import Callable


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
