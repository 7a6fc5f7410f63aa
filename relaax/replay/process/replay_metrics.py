"""The metrics of a replay, computed from its counts."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from relaax.replay.counts import SHARE
from relaax.telemetry.live_lines import Figure
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.operators.families import Metric, counter, counters, gauge, gauges
from relaax.telemetry.operators.port import Figures

_log = logging.getLogger(__name__)

#: Timed operations of a replay, by the names of its counts.
_WORK = ("insert", "sample", "serialize")

#: Other counts, by the same names.
_COUNTS = (
    "steps", "steps stored", "steps twice", "steps lost", "steps dropped", "steps evicted",
    "items drawn", "writers",
)  # fmt: skip

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
        self._seen, self._seen_at = defaultdict(float, stats()), clock()
        self._newest: dict[str, float] = {}

    def store(self) -> None:
        """Store the metrics since the last call; to be called about once a second."""
        seconds = self._clock() - self._seen_at
        if seconds < _SHORTEST_S:
            return
        before, now = self._seen, defaultdict(float, self._stats())
        self._seen, self._seen_at = now, self._seen_at + seconds
        values = _totals(now)
        if all(now[name] >= before[name] for name in ("steps stored", "items drawn")):
            values |= _since(before, now, seconds)
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


def _totals(now: Mapping[str, float]) -> dict[str, float]:
    """Return sizes, and totals since the beginning."""
    values: dict[str, float] = {name: now[name] for name in _COUNTS}
    values |= {name: now[name] for name in SHARES if name in now}
    values["sample requests"] = now["sample calls"]
    if now["capacity"]:
        values["fill"] = 100 * now["steps"] / now["capacity"]
    if now["steps stored"]:
        values["lifetime utilization"] = 100 * now["items drawn"] / now["steps stored"]
    return values


def _since(
    before: Mapping[str, float], now: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """Return rates over so many seconds."""

    def more(name: str) -> float:
        return now[name] - before[name]

    values = {
        "steps in per second": more("steps stored") / seconds,
        "items out per second": more("items drawn") / seconds,
        "sample requests per second": more("sample calls") / seconds,
    }
    if stored := more("steps stored"):
        values["current utilization"] = 100 * more("items drawn") / stored
    for work in _WORK:
        values[f"{work} load"] = 100 * more(f"{work} seconds") / seconds
        if calls := more(f"{work} calls"):
            values[f"{work} time"] = more(f"{work} seconds") / calls
    return values
