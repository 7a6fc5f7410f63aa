"""Steps on their way into a storage and its tables: their order, gaps, and the ends of episodes."""

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.storage import ABANDONED, ENDS, FINAL, GAP, NONE, START, Flags, Storage, steps_in
from relaax.replay.table import Table
from relaax.replay.writers import MissingSteps, Slot, Writers

Array = npt.NDArray[Any]


@dataclass
class StepCounts:
    """Counts of a replay since it was empty."""

    duplicate: int = 0
    lost: int = 0
    dropped: int = 0
    #: Environment steps that are stored: all but the states in which an episode was cut off.
    actions: int = 0
    #: Changes of the contents; see ``Replay.changes``.
    changes: int = 0


class Intake:
    """Puts the steps of slots into ``storage``, and items of them into ``tables``.

    Not for several threads at once: its owner has the lock of ``changed``.
    """

    def __init__(
        self,
        storage: Storage,
        tables: Collection[Table],
        writers: Writers,
        changed: threading.Condition,
    ) -> None:
        self.counts = StepCounts()
        self._storage = storage
        self._tables = tables
        self._writers = writers
        self._changed = changed
        rows_at_once = min((table.most_rows_at_once for table in tables), default=math.inf)
        #: So many steps are taken at once: older ones stay until items are made of them.
        self._most_at_once = int(max(1, min(storage.capacity // 2, rows_at_once)))

    def known(self, slot: Slot, environment: int, first: int) -> int:
        """Return how many steps from ``first`` on are stored; MissingSteps before that one."""
        if slot.next_step < first and slot.may_have_gap:
            self._skip(slot, first)
        if slot.next_step < first:
            raise MissingSteps(
                f"step {slot.next_step} of environment {environment} must come next, not {first}"
            )
        return slot.next_step - first

    def piece(self, flags: Flags, begin: int) -> slice:
        """Return which steps of flags [N] are taken at once from ``begin`` on: up to a gap."""
        end = min(begin + self._most_at_once, len(flags))
        gaps = np.flatnonzero(flags[begin + 1 : end] & GAP)
        return slice(begin, begin + 1 + int(gaps[0]) if len(gaps) else end)

    def keeps_out(self, slot: Slot, flags: Flags) -> str:
        """Return why a table takes no more steps of ``slot``, with flags [N]; "" if all do."""
        flags = np.where(flags & GAP, flags | START, flags)  # episodes before it are ended by both
        whys = (table.keeps_out(slot.number, flags) for table in self._tables)
        return next(filter(None, whys), "")

    def take(self, slot: Slot, rows: Mapping[str, Array], flags: Flags) -> int:
        """Store a piece of steps [N, ...] of ``slot``; return the number of actions."""
        if flags[0] & (START | GAP):
            self._end_episode(slot)
        if flags[0] & GAP and self._storage.newest(slot.number) != NONE:
            self.leave([slot])
            self._writers.renumber(slot)
        places = self._storage.append(slot.number, rows, _with_ends(flags & ~np.uint8(GAP)))
        slot.next_step += len(flags)
        actions = steps_in(flags, rows)
        self.counts.actions += actions
        for table in self._tables:
            table.appended(slot.number, places)
        self._changed.notify_all()
        return actions

    def leave(self, slots: Sequence[Slot]) -> None:
        """End the unfinished episodes of ``slots`` that get no more steps."""
        for slot in slots:
            self._end_episode(slot)
            for table in self._tables:
                table.left(slot.number)
        self._changed.notify_all()

    def _skip(self, slot: Slot, first: int) -> None:
        """Go on at step ``first``, in rows apart: steps before it were lost."""
        self.counts.changes += 1
        self.leave([slot])
        self.counts.lost += first - slot.next_step
        self._writers.renumber(slot)
        slot.next_step = first
        slot.may_have_gap = False

    def _end_episode(self, slot: Slot) -> None:
        """Let the unfinished episode of ``slot``, if any, end in its newest state."""
        if self._storage.cut(slot.number) == NONE:
            return
        for table in self._tables:
            table.appended(slot.number, np.zeros(0, np.int64))


def _with_ends(flags: Flags) -> Flags:
    """Return flags [N] in which a step before a start ends its episode, at least by being cut off.

    Some steps may have been dropped between the two.
    """
    before = np.flatnonzero(flags[1:] & START)
    cut = before[flags[before] & ENDS == 0]
    if len(cut) == 0:
        return flags
    ended = flags.copy()
    ended[cut] |= FINAL | ABANDONED
    return ended
