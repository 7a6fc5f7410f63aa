"""Curves of both programs as a table in Markdown: a row for each environment and program."""

import math
import statistics
from collections.abc import Callable, Sequence

from curves import Curve

HEADER = (
    "environment",
    "program",
    "seeds",
    "steps",
    "seconds",
    "return after a quarter of the same steps",
    "after the same steps",
    "after a quarter of the same seconds",
    "after the same seconds",
    "at its own end",
)

#: The last column, where a training was evaluated.
EVALUATED = "evaluated at its own end"

#: Parts of what all trainings on an environment have reached, at which they are compared.
_PARTS = (0.25, 1.0)


def table(curves: Sequence[Curve]) -> str:
    """Return the table; returns are means over seeds, with the lowest and the highest."""
    rows: list[tuple[str, ...]] = [(*HEADER, EVALUATED)]
    for environment in dict.fromkeys(curve.environment for curve in curves):
        rows += _rows([curve for curve in curves if curve.environment == environment])
    if all(curve.evaluation is None for curve in curves):
        rows = [row[:-1] for row in rows]
    rows.insert(1, tuple("---" for _ in rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    """Return the rows of an environment, a program each."""
    steps = min(curve.steps for curve in curves)
    seconds = min(curve.seconds for curve in curves)
    return [
        _row([curve for curve in curves if curve.program == program], steps, seconds)
        for program in dict.fromkeys(curve.program for curve in curves)
    ]


def _row(seeds: Sequence[Curve], steps: int, seconds: float) -> tuple[str, ...]:
    return (
        seeds[0].environment,
        seeds[0].program,
        str(len(seeds)),
        f"{statistics.median(curve.steps for curve in seeds):,.0f}",
        f"{statistics.median(curve.seconds for curve in seeds):,.0f}",
        *(
            f"{_returns(seeds, Curve.at_steps, part * steps)} at {part * steps:,.0f}"
            for part in _PARTS
        ),
        *(
            f"{_returns(seeds, Curve.at_seconds, part * seconds)} at {part * seconds:,.0f} s"
            for part in _PARTS
        ),
        _returns(seeds, Curve.at_seconds, math.inf),
        _with_range([curve.evaluation for curve in seeds if curve.evaluation is not None]),
    )


def _returns(seeds: Sequence[Curve], at: Callable[[Curve, float], float], place: float) -> str:
    """Return how trainings of several seeds have done at so many steps, or seconds."""
    return _with_range([at(curve, place) for curve in seeds])


def _with_range(returns: Sequence[float]) -> str:
    """Return the mean with the lowest and the highest; nothing of no returns."""
    if not returns:
        return ""
    mean, least, most = statistics.fmean(returns), min(returns), max(returns)
    digits = 2 if max(map(abs, returns)) < 10 else 0
    return f"{mean:,.{digits}f} ({least:,.{digits}f} to {most:,.{digits}f})"
