"""Lines of the log that strangers can cause: a few at once, and then one now and then."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from relaax.forked_memory import ForkedMemory

#: One line of a kind is written in so many seconds, after those that may come at once.
EVERY_S = 10.0

#: More kinds than these are not remembered: those go first that came up longest ago.
MOST_KINDS = 4096


@dataclass
class _Kind:
    #: Until when the lines that were written use up what may be written.
    used_until: float = float("-inf")
    left_out: int = 0
    #: The last line that was left out.
    level: int = logging.NOTSET
    text: str = ""
    arguments: tuple[object, ...] = ()


class _Line(NamedTuple):
    """A line that is due."""

    level: int
    text: str
    arguments: tuple[object, ...]

    def write(self, log: logging.Logger) -> None:
        """Log it. The lock is free by now: whoever reads the log may be slow."""
        log.log(self.level, self.text, *self.arguments)


class ThrottledLog:
    """Writes to ``log``: of each kind ``at_once`` lines, and then one in ``EVERY_S`` seconds.

    A line that follows some that were left out says how many of the kind there were. For several
    threads: one that writes keeps no other waiting.
    """

    def __init__(
        self,
        log: logging.Logger,
        at_once: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._ahead_s = (at_once - 1) * EVERY_S
        self._clock = clock
        #: By name, those that came up last at the end.
        self._kinds: OrderedDict[str, _Kind] = OrderedDict()
        self._lock = threading.Lock()

    def info(self, text: str, *arguments: object, kind: str) -> None:
        """Log a line of a kind, if one may be written."""
        self._add(kind, logging.INFO, text, arguments)

    def warning(self, text: str, *arguments: object, kind: str) -> None:
        """Log a line of a kind, if one may be written."""
        self._add(kind, logging.WARNING, text, arguments)

    def error(self, text: str, *arguments: object, kind: str) -> None:
        """Log a line of a kind, if one may be written."""
        self._add(kind, logging.ERROR, text, arguments)

    def say_left_out(self) -> None:
        """Log the last line of each kind that was left out, if one may be written by now.

        Whoever calls this once a second leaves out nothing for longer than ``EVERY_S``.
        """
        with self._alone():
            lines = [
                self._line(kind, kind.level, kind.text, kind.arguments)
                for kind in self._kinds.values()
                if kind.left_out and kind.text and self._may_write(kind)
            ]
        for line in lines:
            line.write(self._log)

    def _add(self, name: str, level: int, text: str, arguments: tuple[object, ...]) -> None:
        with self._alone():
            line = self._due(name, level, text, arguments)
        if line is not None:
            line.write(self._log)

    def _alone(self) -> AbstractContextManager[object]:
        """Keep out all others meanwhile."""
        return self._lock

    def _due(self, name: str, level: int, text: str, arguments: tuple[object, ...]) -> _Line | None:
        """Return the line if it may be written now, or take note of it."""
        kind = self._kinds.setdefault(name, _Kind())
        self._kinds.move_to_end(name)
        if len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)
        kind.left_out += 1
        if self._may_write(kind):
            return self._line(kind, level, text, arguments)
        kind.level, kind.text, kind.arguments = level, text, arguments
        return None

    def _may_write(self, kind: _Kind) -> bool:
        return self._clock() >= kind.used_until - self._ahead_s

    def _line(self, kind: _Kind, level: int, text: str, arguments: tuple[object, ...]) -> _Line:
        kind.used_until = max(kind.used_until, self._clock()) + EVERY_S
        times, kind.left_out = kind.left_out, 0
        more = f" ({times} times since the last such message)" if times > 1 else ""
        return _Line(level, f"{text}%s", (*arguments, more))


class _ForkedKind(_Kind):
    """What processes share of a kind; the line that one of them has left out is its own."""

    def __init__(self, shared: "memoryview[float]") -> None:
        self._shared = shared  # float64 [2]
        super().__init__()

    @property
    def used_until(self) -> float:
        return float(self._shared[0])

    @used_until.setter
    def used_until(self, value: float) -> None:
        self._shared[0] = value

    @property
    def left_out(self) -> int:
        return int(self._shared[1])

    @left_out.setter
    def left_out(self, value: int) -> None:
        self._shared[1] = value


class ForkedThrottledLog(ThrottledLog):
    """The same for several threads and processes, which are forked from where this is made.

    All of them together write so few lines. There are no other ``kinds``. A process that ends says
    nothing of what it has left out; the next line of the kind counts it.
    """

    def __init__(
        self,
        log: logging.Logger,
        kinds: Sequence[str],
        at_once: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(log, at_once, clock)
        self._memory = ForkedMemory("throttled log", len(kinds) * 16)
        numbers = memoryview(self._memory.bytes).cast("d")
        for place, kind in enumerate(kinds):
            self._kinds[kind] = _ForkedKind(numbers[2 * place : 2 * place + 2])

    def _alone(self) -> AbstractContextManager[object]:
        return self._memory.alone()
