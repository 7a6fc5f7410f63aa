"""The figures of a replay, made of what it counts."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from relaax.server.common.operators.families import Metric, counter, counters, gauge
from relaax.server.common.operators.port import Figures

#: What a replay takes time for, as its counts name it.
_WORK = ("insert", "sample", "serialize")


def replay_figures(stats: Callable[[], Mapping[str, float]]) -> Figures:
    """Return what reads the figures of a replay whose counts ``stats`` returns."""
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
        "Steps that are not stored, by what became of them",
        "how",
        {how: counts[f"steps {how}"] for how in ("dropped", "evicted", "lost", "twice")},
    )
    work = [each for each in _WORK if f"{each} calls" in counts]
    yield counters(
        "replay_calls", "Calls, by what is done", "work", {w: counts[f"{w} calls"] for w in work}
    )
    yield counters(
        "replay_busy_seconds",
        "Time that calls took, without waiting",
        "work",
        {w: counts[f"{w} seconds"] for w in work},
    )
