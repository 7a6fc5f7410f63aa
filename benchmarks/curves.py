"""The return of a training by environment steps and by seconds."""

import bisect
import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Points are means over so many episodes, unless a training says otherwise, or over all if there
#: are fewer yet.
EPISODES = 100

#: More points than a plot can show are left out.
MOST_POINTS = 150


@dataclass(frozen=True)
class Episode:
    """An episode that has ended."""

    #: Of all environments together, when it ended.
    steps: int
    #: Since the environments were started.
    seconds: float
    reward: float


@dataclass(frozen=True)
class Progress:
    """How far a training is, and what has ended since it was said before."""

    steps: int
    seconds: float
    ended: list[Episode]
    #: The mean return of what was learnt, evaluated; only at the end, if at all.
    evaluation: float | None = None


@dataclass(frozen=True)
class Point:
    """The mean return at a moment of a training."""

    steps: int
    seconds: float
    mean_return: float


@dataclass(frozen=True)
class Curve:
    """One training."""

    environment: str
    program: str
    seed: int
    #: How far it went.
    steps: int
    seconds: float
    points: list[Point]
    #: The mean return of what was learnt in the end, with actions that are not drawn; None where it
    #: was not evaluated.
    evaluation: float | None = None

    def at_steps(self, steps: float) -> float:
        """Return the mean return after so many steps; NaN before the first episode has ended."""
        return self._before(bisect.bisect([point.steps for point in self.points], steps))

    def at_seconds(self, seconds: float) -> float:
        """Return the mean return after so many seconds; NaN before the first episode has ended."""
        return self._before(bisect.bisect([point.seconds for point in self.points], seconds))

    def _before(self, index: int) -> float:
        return self.points[index - 1].mean_return if index else math.nan


def curve_of(row: Mapping[str, Any]) -> Curve:
    """Return the training of a row that ``dataclasses.asdict`` has made of it."""
    return Curve(**{**row, "points": [Point(**point) for point in row["points"]]})


def points_of(episodes: Iterable[Episode], count: int = EPISODES) -> list[Point]:
    """Return the mean of the last ``count`` returns at the end of episodes, evenly chosen."""
    latest: deque[float] = deque(maxlen=count)
    points = []
    for episode in episodes:
        latest.append(episode.reward)
        mean = sum(latest) / len(latest)
        points.append(Point(episode.steps, round(episode.seconds, 2), round(mean, 3)))
    stride = math.ceil(len(points) / MOST_POINTS) or 1
    return points[::-stride][::-1]  # with the last one
