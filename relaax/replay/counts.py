"""The share of each environment's steps that is learnt from, and times of operations."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

import numpy as np

from relaax.replay.selectors import IntArray

#: The log names an environment without learnt steps after this time, and repeats it at this
#: interval.
LONG_S = 60.0

#: The prefix of metrics of shares of steps; so many environments have a metric of their own.
SHARE, MOST_SHARES = "learnt share/", 64


@dataclass
class _Steps:
    since: float
    stored: int = 0
    learnt: int = 0

    @property
    def share(self) -> float:
        return self.learnt / self.stored


class LearntSteps:
    """Counts each slot's stored steps, and how many of them were drawn.

    For a table whose items are drawn once, by the number of the item's slot.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._slots: dict[int, _Steps] = {}
        self._say_at = clock() + LONG_S

    def stored(self, slot: int, steps: int) -> None:
        """Count steps of a slot."""
        if slot not in self._slots:
            self._slots[slot] = _Steps(self._clock())
        self._slots[slot].stored += steps

    def learnt(self, slots: IntArray, steps: int) -> None:
        """Count so many steps that were learnt from of each of ``slots`` [N]."""
        for slot, items in zip(*np.unique(slots, return_counts=True), strict=True):
            found = self._slots.get(int(slot))
            if found is not None:
                found.learnt += steps * int(items)

    def left(self, slot: int) -> None:
        """Forget a slot that gets no more steps."""
        self._slots.pop(slot, None)

    def shares(self, labels: Mapping[int, str]) -> dict[str, float]:
        """Return the share of each slot's steps that were learnt from, by ``labels`` of slots."""
        return {labels[slot]: steps.share for slot, steps in self._slots.items() if slot in labels}

    def complaint(self, labels: Mapping[int, str]) -> str | None:
        """Return the slots without learnt steps for long, once in ``LONG_S`` at most.

        ``labels`` name the environment of each slot for operators.
        """
        now = self._clock()
        unlearnt = {
            slot: steps
            for slot, steps in self._slots.items()
            if not steps.learnt and now - steps.since > LONG_S
        }
        has_others = any(steps.learnt for steps in self._slots.values())
        if now < self._say_at or not unlearnt or not has_others:
            return None
        self._say_at = now + LONG_S
        slot, steps = min(unlearnt.items(), key=lambda each: each[1].since)
        return (
            f"nothing is learnt from {len(unlearnt)} of {len(self._slots)} environments: "
            f"{labels.get(slot, 'a departed environment')} has delivered {steps.stored:,} steps "
            f"within {now - steps.since:.0f} s, and no rollout of it has been complete and "
            "learnt from"
        )


def share_figures(shares: Mapping[str, float]) -> dict[str, float]:
    """Return figures of the shares of environments' steps that are learnt from, by their labels."""
    if not shares:
        return {}
    first = itertools.islice(shares.items(), MOST_SHARES)
    return {
        f"{SHARE}least": min(shares.values()),
        f"{SHARE}mean": sum(shares.values()) / len(shares),
        **{f"{SHARE}{label}": share for label, share in first},
    }


class Times:
    """Counts calls, and adds up their seconds, by name; many threads may call it at once."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the operation inside, unless it raises."""
        began = self._clock()
        yield
        seconds = self._clock() - began
        with self._lock:
            for key, amount in ((f"{name} calls", 1), (f"{name} seconds", seconds)):
                self._counts[key] = self._counts.get(key, 0.0) + amount

    def counts(self) -> dict[str, float]:
        """Return ``NAME calls`` and ``NAME seconds`` of all that was counted."""
        with self._lock:
            return dict(self._counts)
