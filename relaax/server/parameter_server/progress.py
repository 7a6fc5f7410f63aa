"""The progress line of a training."""

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

#: The start of a progress line, by which the launcher recognises it.
PREFIX = "training: "

#: Moves to the start of the terminal's row and erases the row.
ERASE_LINE = "\r\x1b[K"


def in_one_row(line: str) -> str:
    """Return the part that fits one row: only the last row of a longer line could be erased."""
    return line[: shutil.get_terminal_size().columns - 1]


@dataclass(frozen=True)
class TrainingProgress:
    """The state of a training that its progress line shows."""

    global_t: int
    steps_per_s: float
    #: Mean return of the latest episodes; None before the first has ended.
    mean_return: float | None
    #: Number of episodes in that mean.
    episodes: int
    #: Number of checkpoints that this process has saved.
    checkpoints: int

    def __str__(self) -> str:
        mean = "-" if self.mean_return is None else f"{self.mean_return:.1f}"
        return (
            f"{PREFIX}step {self.global_t:,} at {self.steps_per_s:,.0f}/s | "
            f"return {mean} ({self.episodes} episodes) | "
            f"{self.checkpoints} checkpoints"
        )


class StepRate:
    """Measures the steps per second between two updates."""

    def __init__(self, global_t: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = (clock(), global_t)

    def update(self, global_t: int) -> float:
        """Return the steps per second since the previous update, or since the start."""
        then, steps = self._seen
        self._seen = (self._clock(), global_t)
        return (global_t - steps) / max(self._seen[0] - then, 1e-9)


class ProgressPrinter:
    """Shows the progress in place on a terminal, else as a line every ``interval_s`` seconds."""

    def __init__(self, stream: TextIO | None = None, interval_s: float = 2.0) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._in_place = self._stream.isatty()
        self._interval_s = 0.0 if self._in_place else interval_s
        self._shown_at = -interval_s

    def show(self, progress: TrainingProgress) -> None:
        """Show ``progress``, unless the interval since the last line is not over."""
        if time.monotonic() - self._shown_at < self._interval_s:
            return
        self._shown_at = time.monotonic()
        if self._in_place:
            row = ERASE_LINE + in_one_row(str(progress))
            print(row, end="", file=self._stream, flush=True)
        else:
            print(progress, file=self._stream, flush=True)

    def close(self, progress: TrainingProgress) -> None:
        """Show the last progress and end the line."""
        print(f"{ERASE_LINE if self._in_place else ''}{progress}", file=self._stream, flush=True)
