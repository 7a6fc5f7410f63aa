"""The progress of a run, as one line on a terminal."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.telemetry.live_lines import Figure, LiveLine, StatePrinter, asked_interval_s

_log = logging.getLogger(__name__)

_RETURNS_AVERAGED = 100
_TERMINAL_INTERVAL_S = 0.5
_LOG_INTERVAL_S = 10.0

#: When the first line is shown: soon, as a sign of life, or of a missing server.
_FIRST_AFTER_S = 2.0


class RunProgress(RunObserver):
    """Counts the events of a run's environments."""

    def __init__(self, environments: int) -> None:
        self.environments = environments
        #: Whether there has been a session with the server.
        self.was_connected = False
        self.connected = 0
        self.episodes = 0
        self.steps = 0
        #: How often environments were made again.
        self.made_again = 0
        #: How many were made again too often, and are gone.
        self.lost = 0
        self._doubts: set[str] = set()
        self._returns: deque[float] = deque(maxlen=_RETURNS_AVERAGED)
        #: Of all returns: their mean, the sum of squared distances from it, and the extremes.
        self._mean = self._squares = 0.0
        self._smallest, self._largest = math.inf, -math.inf

    def on_connected(self) -> None:
        """Take note of it."""
        self.was_connected = True

    def on_restart(self, message: str) -> None:
        """Log and count it."""
        _log.warning("%s", message)
        self.made_again += 1

    def on_lost(self, message: str) -> None:
        """Log it."""
        _log.warning("%s", message)

    def on_doubt(self, message: str) -> None:
        """Log a doubt, once for all processes."""
        if message not in self._doubts:
            self._doubts.add(message)
            super().on_doubt(message)

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Count an episode that is over."""
        self.episodes += 1
        value = summary.episode_return
        self._returns.append(value)
        # Welford 1962, "Note on a Method for Calculating Corrected Sums of Squares and Products".
        distance = value - self._mean
        self._mean += distance / self.episodes
        self._squares += distance * (value - self._mean)
        self._smallest, self._largest = min(self._smallest, value), max(self._largest, value)

    def summary(self) -> str:
        """Return the statistics of all returns in words; there is at least one episode."""
        deviation = math.sqrt(self._squares / self.episodes)
        return (
            f"return of {self.episodes} episodes: mean {self._mean:.2f}, standard deviation "
            f"{deviation:.2f}, smallest {self._smallest:.2f}, largest {self._largest:.2f}"
        )

    def line(self, steps_per_second: float) -> LiveLine:
        """Return the progress."""
        figures = [
            Figure(self.connected, "connected", of=self.environments),
            Figure(self.episodes, "episodes"),
            Figure(round(steps_per_second), "steps/s"),
        ]
        if self._returns:
            figures.append(Figure(sum(self._returns) / len(self._returns), "mean return"))
        if self.made_again:
            figures.append(Figure(self.made_again, "restarts"))
        if self.lost:
            figures.append(Figure(self.lost, "lost"))
        return LiveLine("environments", tuple(figures))


class ProgressDisplay:
    """Shows the progress: on a terminal in one line, elsewhere as a new line every 10 s.

    The first line comes after 2 s at most. ``relaax-train`` asks for lines at an interval of its
    own.
    """

    def __init__(
        self, progress: RunProgress, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress = progress
        self._clock = clock
        interval_s = asked_interval_s() or _LOG_INTERVAL_S
        self._printer = StatePrinter(
            stream, interval_s, _TERMINAL_INTERVAL_S, _FIRST_AFTER_S, clock
        )
        self._shown_at, self._steps_shown = clock(), 0

    def refresh(self) -> None:
        """Show the progress if the last time is long enough ago."""
        if self._printer.is_due():
            self._printer.show(self._line())

    def finish(self) -> None:
        """Show the progress a last time and end the line."""
        self._printer.close(self._line())

    def _line(self) -> LiveLine:
        now, steps = self._clock(), self._progress.steps
        line = self._progress.line((steps - self._steps_shown) / max(now - self._shown_at, 1e-3))
        self._shown_at, self._steps_shown = now, steps
        return line
