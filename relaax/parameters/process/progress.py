"""The progress of a training, and its line."""

import time
from collections.abc import Callable
from dataclasses import dataclass


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
    #: The global step at which the training is over; None if no number of steps ends it.
    last_t: int | None = None
    #: The mean return at which the training is over; None if no return ends it.
    goal_return: float | None = None
    #: Environments that are connected, and their connections.
    environments: int = 0
    connections: int = 0
    #: Until ``last_t``; None if that is not known.
    seconds_left: int | None = None
    #: The goal is a mean of so many episodes; None if that is not known, or there are enough.
    needed_episodes: int | None = None
    #: Mean return of the latest evaluations, and how many they are; None before the first one.
    mean_evaluation: float | None = None
    evaluations: int = 0
    #: Why the training makes no progress; "" while it does.
    standstill: str = ""

    def __str__(self) -> str:
        rate = f"{self.steps_per_s:,.0f}/s"
        parts = [f"{self.steps()} at {rate}", f"{self.returns()} ({self.averaged()})"]
        if self.mean_evaluation is not None:
            parts.append(f"{self.evaluated()} ({counted(self.evaluations, 'episode')})")
        parts.append(self.connected())
        parts.append(counted(self.checkpoints, "checkpoint"))
        if self.seconds_left is not None:
            parts.append(self.time_left())
        if self.standstill:
            parts.append(self.standstill)
        return "training: " + " | ".join(parts)

    def steps(self) -> str:
        """Return the global step, and the last one if it is known."""
        goal = "" if self.last_t is None else f" of {self.last_t:,}"
        return f"step {self.global_t:,}{goal}"

    def returns(self) -> str:
        """Return the mean return, and its goal if there is one."""
        if self.goal_return is None:
            return f"return {shown_return(self.mean_return)}"
        return f"return {shown_return(self.mean_return, self.goal_return)} of {self.goal_return:g}"

    def averaged(self) -> str:
        """Return of how many episodes the mean return is, and of how many it must be for a goal."""
        if self.needed_episodes is None:
            return counted(self.episodes, "episode")
        return f"{self.episodes} of {counted(self.needed_episodes, 'episode')}"

    def evaluated(self) -> str:
        """Return the mean return of the latest evaluations; there is one at least."""
        return f"evaluated {self.mean_evaluation:.1f}"

    def connected(self) -> str:
        """Return how many environments there are, and on how many connections."""
        environments = counted(self.environments, "environment")
        return f"{environments} on {counted(self.connections, 'connection')}"

    def time_left(self) -> str:
        """Return the hours, minutes and seconds left; a return may end the training earlier."""
        minutes, seconds = divmod(self.seconds_left or 0, 60)
        limit = "" if self.goal_return is None else "at most "
        return f"{limit}{minutes // 60}:{minutes % 60:02}:{seconds:02} left"

    def fraction(self) -> float | None:
        """Return the part of the steps that is done, from 0 to 1; None if it is not known."""
        return None if self.last_t is None else min(1.0, self.global_t / max(self.last_t, 1))


def shown_return(mean: float | None, goal: float = 0.0) -> str:
    """Return a mean return with the decimals of its ``goal``, and one at least; - for None."""
    decimals = max(1, len(f"{goal:g}".partition(".")[2]))
    return "-" if mean is None else f"{mean:.{decimals}f}"


def counted(count: int, what: str) -> str:
    """Return a number with the word for the things counted, in its singular or plural."""
    return f"{count} {what}" + ("" if count == 1 else "s")


class StepRate:
    """Measures the steps per second between two updates, and their smoothed rate."""

    def __init__(self, global_t: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = (clock(), global_t)
        self._smoothed: float | None = None

    def update(self, global_t: int) -> float:
        """Return the steps per second since the previous update, or since the start.

        Where a training goes back to a checkpoint, it is measured anew.
        """
        then, steps = self._seen
        self._seen = (self._clock(), global_t)
        if global_t < steps:
            self._smoothed = None
            return 0.0
        rate = (global_t - steps) / max(self._seen[0] - then, 1e-9)
        self._smoothed = rate if not self._smoothed else 0.8 * self._smoothed + 0.2 * rate
        return rate

    def seconds_for(self, steps: float) -> int | None:
        """Return how long so many steps take; None before any were measured."""
        return round(max(steps, 0) / self._smoothed) if self._smoothed else None
