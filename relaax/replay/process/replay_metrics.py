"""The metrics of a replay, computed from its counts."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from relaax.replay.learnt import SHARE
from relaax.telemetry.live_lines import Figure
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.operators.families import Metric, counter, counters, gauge, gauges
from relaax.telemetry.operators.port import Figures

_log = logging.getLogger(__name__)

#: Timed operations of a replay, by the names of its counts.
_WORK = ("insert", "sample", "serialize")

#: Other counts, by the same names.
_COUNTS = ("steps twice", "steps lost", "steps dropped", "steps evicted", "writers")

#: Counts over all environments; single environments are many, and come and go.
SHARES = (f"{SHARE}least", f"{SHARE}mean")

#: Rates are not computed over a shorter time.
_SHORTEST_S = 0.5


def replay_figures(stats: Callable[[], Mapping[str, float]]) -> Figures:
    """Return the reader of a replay's figures; ``stats`` returns its counts."""
    return partial(_read, stats)


def _read(stats: Callable[[], Mapping[str, float]]) -> Iterable[Metric]:
    counts = stats()
    if not counts:
        return
    yield gauge("replay_steps", "Steps that are stored now", counts["steps"])
    yield gauge("replay_capacity_steps", "Steps that can be stored", counts["capacity"])
    yield gauge("replay_writers", "Workers and actors that deliver", counts["writers"])
    yield counter("replay_steps_stored", "Steps that were stored", counts["steps stored"])
    yield counter("replay_items_drawn", "Items that were drawn", counts["items drawn"])
    yield counters(
        "replay_steps_gone",
        "Steps that are not stored, by their fate",
        "how",
        {how: counts[f"steps {how}"] for how in ("dropped", "evicted", "lost", "twice")},
    )
    shares = {
        name.removeprefix(f"{SHARE}environment "): value
        for name, value in counts.items()
        if name.startswith(SHARE) and name not in SHARES
    }
    if shares:
        yield gauges(
            "replay_learnt_share",
            "Share of the steps of an environment that were learnt from, by its number",
            "environment",
            shares,
        )
    work = [each for each in _WORK if f"{each} calls" in counts]
    yield counters(
        "replay_calls", "Calls, by their work", "work", {w: counts[f"{w} calls"] for w in work}
    )
    yield counters(
        "replay_busy_seconds",
        "Time that calls took, without waiting",
        "work",
        {w: counts[f"{w} seconds"] for w in work},
    )


class ReplayMetrics:
    """Compares the counts that ``stats`` returns with the previous ones.

    Rates and loads are made of the differences, by this process's own monotonic clock: the clocks
    of two machines are never compared. A smaller count than before shows that the replay has
    started again; nothing is stored for that interval. ``group`` is put before all names.
    """

    def __init__(
        self,
        stats: Callable[[], Mapping[str, float]],
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        group: str = "replay",
    ) -> None:
        self._stats = stats
        self._metrics = metrics
        self._group = group
        self._clock = clock
        self._seen, self._seen_at = _Counts(stats()), clock()
        self._newest: dict[str, float] = {}

    def store(self) -> None:
        """Store the metrics since the last call; to be called about once a second."""
        seconds = self._clock() - self._seen_at
        if seconds < _SHORTEST_S:
            return
        before, now = self._seen, _Counts(self._stats())
        self._seen, self._seen_at = now, self._seen_at + seconds
        values = now.totals()
        if now.go_on_from(before):
            values |= now.since(before, seconds)
        else:
            _log.warning("the replay has started again: its rates of this second are not stored")
        for name, value in values.items():
            self._metrics.scalar(f"{self._group}/{name}", value)
        self._newest = values

    def figures(self) -> list[Figure]:
        """Return the figures of a live line: sizes, and the rates of the last second."""
        figures = [Figure(self._seen["steps"], "steps stored", of=self._seen["capacity"])]
        for name, what in (("steps in per second", "steps/s"), ("items out per second", "items/s")):
            if name in self._newest:
                figures.append(Figure(self._newest[name], what))
        return figures


class _Counts:
    """The counts of a replay at a moment."""

    def __init__(self, stats: Mapping[str, float]) -> None:
        self._stats = stats
        #: Items, drawn from all tables; those of mixed ones are counted once.
        self.drawn = stats.get("items drawn", 0.0)

    def __getitem__(self, name: str) -> float:
        return self._stats.get(name, 0.0)

    def go_on_from(self, before: "_Counts") -> bool:
        """Return whether these are later counts of the same replay."""
        return self["steps stored"] >= before["steps stored"] and self.drawn >= before.drawn

    def totals(self) -> dict[str, float]:
        """Return sizes, and totals since the beginning."""
        stored, capacity = self["steps stored"], self["capacity"]
        values = {
            "steps": self["steps"],
            "steps stored": stored,
            "items drawn": self.drawn,
            "sample requests": self["sample calls"],
            **{name: self[name] for name in _COUNTS},
            **{name: self[name] for name in SHARES if name in self._stats},
        }
        if capacity:
            values["fill"] = 100 * self["steps"] / capacity
        if stored:
            values["lifetime utilization"] = 100 * self.drawn / stored
        return values

    def since(self, before: "_Counts", seconds: float) -> dict[str, float]:
        """Return rates over so many seconds, since ``before``."""
        stored = self["steps stored"] - before["steps stored"]
        drawn = self.drawn - before.drawn
        values = {
            "steps in per second": stored / seconds,
            "items out per second": drawn / seconds,
            "sample requests per second": (self["sample calls"] - before["sample calls"]) / seconds,
        }
        if stored:
            values["current utilization"] = 100 * drawn / stored
        for work in _WORK:
            calls = self[f"{work} calls"] - before[f"{work} calls"]
            busy_s = self[f"{work} seconds"] - before[f"{work} seconds"]
            values[f"{work} load"] = 100 * busy_s / seconds
            if calls:
                values[f"{work} time"] = busy_s / calls
        return values
