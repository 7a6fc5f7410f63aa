"""Draws the return of a training."""

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlotLabels:
    """What a plot says besides its points."""

    #: The name of the run.
    title: str
    #: How many episodes each point is the mean of.
    episodes: int
    #: Drawn as a line; None for none.
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
