"""The mean return over the steps of a training, kept beside its checkpoints."""

import csv
import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from relaax.checkpoints import BlobStore
from relaax.errors import CheckpointError, DamagedCheckpoint

_log = logging.getLogger(__name__)

#: When there are more points, every second one is dropped.
MOST_POINTS = 2000

#: The names of the files.
CURVE, PLOT = "return.csv", "return.png"


@dataclass(frozen=True)
class PlotLabels:
    """The words of a plot."""

    #: The name of the run.
    title: str
    #: How many episodes each point is the mean of.
    episodes: int
    #: Drawn as a line, if there is a goal.
    goal_return: float | None = None


def plotted(points: Sequence[tuple[int, float]], labels: PlotLabels) -> bytes:
    """Return a PNG of mean returns over global steps; ImportError without matplotlib."""
    # It takes tens of MB, which a training does not need before it is over.
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*points, strict=True), marker="." if len(points) == 1 else "")
    if labels.goal_return is not None:
        axes.axhline(labels.goal_return, linestyle="--", color="grey")
    axes.set(
        title=labels.title,
        xlabel="environment steps",
        ylabel=f"mean return of the last {labels.episodes} episodes",
    )
    axes.grid(alpha=0.3)
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture)
    return picture.getvalue()


class Point(NamedTuple):
    """The mean return at a global step."""

    global_t: int
    mean_return: float


class ReturnCurve:
    """Points of the mean return, in a table and a plot in the place of the checkpoints.

    The table is saved with each checkpoint, so that a restarted training goes on with it. A failed
    write is a warning: the training goes on.
    """

    def __init__(
        self, store: BlobStore, labels: PlotLabels, most_points: int = MOST_POINTS
    ) -> None:
        self._store = store
        self._labels = labels
        self._most_points = most_points
        self._stride, self._skipped = 1, 0
        #: The global step of the last point that was offered, or with which the training goes on.
        self._seen = 0
        self._has_grown = False
        self.points: list[Point] = []

    def restore(self, global_t: int) -> None:
        """Go on with the saved points up to ``global_t``, if there are any."""
        self._seen = global_t
        try:
            if CURVE in self._store.names():
                saved = _parsed(self._store.get(CURVE))
                self.points = [point for point in saved if point.global_t <= global_t]
        except (CheckpointError, DamagedCheckpoint, ValueError) as error:
            _log.warning("the plot of the return begins anew: %s: %s", CURVE, error)

    def add(self, global_t: int, mean_return: float) -> None:
        """Add a point, if there was a step since the one before, or since the training went on."""
        if global_t <= self._seen:
            return
        self._seen, self._has_grown = global_t, True
        self._skipped += 1
        if self._skipped < self._stride:
            return
        self._skipped = 0
        self.points.append(Point(global_t, mean_return))
        if len(self.points) > self._most_points:
            self.points, self._stride = self.points[::2], 2 * self._stride

    def save(self) -> None:
        """Write the table."""
        if self.points:
            self._put(CURVE, _table(self.points))

    def draw(self) -> str | None:
        """Draw the plot and return where it is, or the table.

        None if there is neither, or where nothing was learnt and the plot is there already.
        """
        if not self.points or not (self._has_grown or self._is_new()):
            return None
        try:
            picture = plotted(self.points, self._labels)
        except ImportError:
            return f"return by step in {self._path(CURVE)}; matplotlib, if installed, plots it"
        except Exception:  # a plot is not worth losing the end of the training for
            _log.exception("the return was not plotted")
            return f"return by step in {self._path(CURVE)}"
        return f"plot of the return in {self._path(PLOT)}" if self._put(PLOT, picture) else None

    def _is_new(self) -> bool:
        """Return whether there is no plot yet: after a kill, for example."""
        try:
            return PLOT not in self._store.names()
        except CheckpointError:
            return True  # writing it says what is wrong

    def _put(self, name: str, data: bytes) -> bool:
        try:
            self._store.put(name, data)
        except CheckpointError as error:
            _log.warning("the return was not saved: %s", error)
            return False
        return True

    def _path(self, name: str) -> str:
        return f"{self._store.location().rstrip('/')}/{name}"


def _table(points: list[Point]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Point._fields)
    writer.writerows(points)
    return text.getvalue().encode()


def _parsed(table: bytes) -> list[Point]:
    """Return the points of a table; ValueError if it cannot be read."""
    try:
        head, *rows = csv.reader(io.StringIO(table.decode()))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if tuple(head) != Point._fields:
        raise ValueError(f"its columns are {head}, not {list(Point._fields)}")
    return [Point(int(global_t), float(mean)) for global_t, mean in rows]
