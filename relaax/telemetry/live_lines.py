"""A process's state in one line of JSON, again and again, while ``relaax-train`` shows it.

``relaax-live {"group": "learner", "figures": [{"value": 8112, "what": "updates", "of": null}]}``

The processes of a group, for example three replay servers, have the same figures. ``relaax-train``
shows one line for each group: amounts are added up, and other figures (``per``, ``%``, ``mean``)
are averaged. A person reads ``learner: updates 8,112 | updates/s 120``.
"""

import json
import math
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: The groups with live lines, in the order in which they are shown.
GROUPS = (
    "learner", "replay", "inference", "population", "RLX server", "actor", "evaluation",
    "environments",
)  # fmt: skip

#: The environment variable by which ``relaax-train`` asks for these lines: seconds between two.
ASKED_BY = "RELAAX_LIVE_LINES"

#: The start of a line that ``relaax-train`` reads.
MARK = "relaax-live "

#: Moves to the start of the terminal's row and erases the row.
_ERASE_LINE = "\r\x1b[K"

_AVERAGED = re.compile(r"\bper\b|^%|\bmean\b")


def as_line(state: "DataclassInstance") -> str:
    """Return the line of a state, which is a ``LiveLine`` or the progress of a training."""
    return MARK + json.dumps(asdict(state), default=float)


@dataclass(frozen=True)
class Figure:
    """A number with its unit; ``of`` is the largest that it can become."""

    value: float
    what: str
    of: float | None = None

    def __str__(self) -> str:
        of = "" if self.of is None else f" of {_text(self.of)}"
        return f"{self.what} {_text(self.value)}{of}"


@dataclass(frozen=True)
class LiveLine:
    """The figures of one process, or of all processes of a group."""

    group: str
    figures: tuple[Figure, ...]

    def __str__(self) -> str:
        return f"{self.group}: {' | '.join(map(str, self.figures))}"


def combined(lines: Sequence[LiveLine]) -> LiveLine:
    """Return the line of a group, made of the lines of its processes, one at least."""
    by_name: dict[str, list[Figure]] = {}
    for line in lines:
        for figure in line.figures:
            by_name.setdefault(figure.what, []).append(figure)
    return LiveLine(lines[0].group, tuple(_combined(same) for same in by_name.values()))


def can_draw_on(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal on which rows can be erased."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class StatePrinter:
    """Shows the state of this process: in one row of a terminal, else as lines.

    ``relaax-train`` gets lines that it can read. A row is drawn again after ``redraw_s`` seconds,
    a line follows after ``interval_s``, and the first one comes after ``first_s`` at most.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        interval_s: float = 2.0,
        redraw_s: float = 0.0,
        first_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._clock = clock
        self._in_place = can_draw_on(self._stream)
        is_asked = not self._in_place and asked_interval_s() is not None
        self._text: Callable[[DataclassInstance], str] = as_line if is_asked else str
        self._interval_s = redraw_s if self._in_place else interval_s
        self._due = clock() + min(first_s, self._interval_s)

    def is_due(self) -> bool:
        """Return whether it is time to show the state."""
        return self._clock() >= self._due

    def show(self, state: "DataclassInstance") -> None:
        """Show ``state``, of which a terminal shows as much as one row has room for."""
        self._due = self._clock() + self._interval_s
        if self._in_place:
            row = str(state)[: shutil.get_terminal_size().columns - 1]
            print(f"{_ERASE_LINE}{row}", end="", file=self._stream, flush=True)
        else:
            print(self._text(state), file=self._stream, flush=True)

    def close(self, state: "DataclassInstance") -> None:
        """Show the last state, and end the line."""
        erase = _ERASE_LINE if self._in_place else ""
        print(f"{erase}{self._text(state)}", file=self._stream, flush=True)


class LiveLineWriter:
    """Writes the line of this process every so many seconds, if ``relaax-train`` asks for it.

    ``figures`` returns its content. ``write_if_due`` belongs into the process's loop. It never
    waits: a line is left out if a pipe has no room.
    """

    def __init__(
        self,
        group: str,
        figures: Callable[[], Sequence[Figure]],
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._figures = figures
        self._stream = sys.stdout if stream is None else stream
        self._clock = clock
        self._interval_s = asked_interval_s()
        self._due = clock() + (self._interval_s or 0.0)

    def write_if_due(self) -> None:
        """Write the line if it is time to."""
        if self._interval_s is None or self._clock() < self._due:
            return
        self._due = self._clock() + self._interval_s
        if not _has_room(self._stream):
            return
        line = as_line(LiveLine(self._group, tuple(self._figures())))
        try:
            print(line, file=self._stream, flush=True)
        except OSError:  # its reader has ended: this process goes on
            self._interval_s = None


def asked_interval_s(variables: Mapping[str, str] = os.environ) -> float | None:
    """Return how many seconds are between two lines; None if they are not asked for."""
    try:
        interval_s = float(variables.get(ASKED_BY, ""))
    except ValueError:
        return None
    return interval_s if 0 < interval_s < math.inf else None


def _has_room(stream: TextIO) -> bool:
    """Return whether a line can be written now; not to a pipe whose reader was stopped."""
    try:
        return bool(select.select([], [stream.fileno()], [], 0)[1])
    except (OSError, ValueError):  # no file of the system, or closed: writing will show it
        return True


def _combined(same: Sequence[Figure]) -> Figure:
    what, limits = same[0].what, [figure.of for figure in same if figure.of is not None]
    value = sum(figure.value for figure in same)
    if _AVERAGED.search(what):
        value /= len(same)
    return Figure(value, what, sum(limits) if limits else None)


def _text(value: float) -> str:
    """Return a number with three digits at least, and no more than it has."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}"
