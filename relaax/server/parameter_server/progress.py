"""The line that tells how a training goes."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

#: What a progress line starts with; the launcher knows it by that.
PREFIX = "training: "


@dataclass(frozen=True)
class Progress:
    """How far a training is."""

    global_t: int
    steps_per_s: float
    #: Mean return of the latest episodes; None before the first has ended.
    mean_return: float | None
    #: How many episodes that mean is of.
    episodes: int
    checkpoints: int

    def __str__(self) -> str:
        mean = "-" if self.mean_return is None else f"{self.mean_return:.1f}"
        return (
            f"{PREFIX}step {self.global_t:,} | {self.steps_per_s:,.0f} steps/s | "
            f"return {mean} (mean of {self.episodes} episodes) | "
            f"{self.checkpoints} checkpoints written"
        )


class StepRate:
    """Steps a second since the last question."""

    def __init__(self, global_t: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = (clock(), global_t)

    def update(self, global_t: int) -> float:
        """Return the rate since the update before."""
        then, steps = self._seen
        self._seen = (self._clock(), global_t)
        return (global_t - steps) / max(self._seen[0] - then, 1e-9)


class ProgressPrinter:
    """Shows progress: in place on a terminal, otherwise a line every ``interval_s`` seconds."""

    def __init__(self, stream: TextIO | None = None, interval_s: float = 2.0) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._in_place = self._stream.isatty()
        self._interval_s = 0.0 if self._in_place else interval_s
        self._shown_at = -interval_s

    def show(self, progress: Progress) -> None:
        """Show ``progress`` if it is time to."""
        if time.monotonic() - self._shown_at >= self._interval_s:
            self._shown_at = time.monotonic()
            self._write(str(progress))

    def close(self, progress: Progress) -> None:
        """Show how it ended and leave the line."""
        self._write(str(progress))
        if self._in_place:
            print(file=self._stream)

    def _write(self, line: str) -> None:
        if self._in_place:
            print(f"\r\x1b[K{line}", end="", file=self._stream, flush=True)
        else:
            print(line, file=self._stream, flush=True)
