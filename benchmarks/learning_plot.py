"""Curves of both programs as a picture: a row of two panels for each environment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from curves import Curve, Point
from matplotlib.figure import Figure

COLOURS = ("tab:blue", "tab:orange", "tab:green")

#: Points of a mean over seeds.
_RESOLUTION = 200


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Write a PNG: the mean return by steps and by seconds; each seed is faint, their mean not."""
    environments = list(dict.fromkeys(curve.environment for curve in curves))
    figure = Figure(figsize=(11, 2.8 * len(environments)), layout="tight")
    rows = figure.subplots(len(environments), 2, squeeze=False)
    for environment, panels in zip(environments, rows, strict=True):
        shown = [curve for curve in curves if curve.environment == environment]
        for axis, panel in zip(("steps", "seconds"), panels, strict=True):
            _fill(panel, axis, shown)
            panel.set(xlabel=axis, title=environment)
        panels[0].set_ylabel("mean return of the latest episodes")
        panels[0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _fill(panel: Any, axis: str, curves: Sequence[Curve]) -> None:
    programs = list(dict.fromkeys(curve.program for curve in curves))
    for colour, program in zip(COLOURS, programs, strict=False):
        seeds = [curve for curve in curves if curve.program == program and curve.points]
        for curve in seeds:
            returns = [point.mean_return for point in curve.points]
            panel.plot(_places(curve, axis), returns, color=colour, alpha=0.25, linewidth=0.8)
        if seeds:
            panel.plot(*_mean(seeds, axis), color=colour, label=program)
    panel.grid(alpha=0.3)


def _mean(curves: Sequence[Curve], axis: str) -> tuple[Any, Any]:
    """Return places and the mean of all curves there, where all of them have points."""
    places = [_places(curve, axis) for curve in curves]
    grid = np.linspace(
        max(each[0] for each in places), min(each[-1] for each in places), _RESOLUTION
    )
    returns = [
        np.interp(grid, each, [point.mean_return for point in curve.points])
        for each, curve in zip(places, curves, strict=True)
    ]
    return grid, np.mean(returns, axis=0)


def _places(curve: Curve, axis: str) -> list[float]:
    return [_place(point, axis) for point in curve.points]


def _place(point: Point, axis: str) -> float:
    return point.steps if axis == "steps" else point.seconds
