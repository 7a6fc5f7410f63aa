"""Stored steps and the tables over them, for many threads."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.gather import Empty
from relaax.replay.mixed import Mixed
from relaax.replay.schema import Schema
from relaax.replay.selectors.selector import FloatArray, IntArray
from relaax.replay.storage import ENDS, FINAL, NONE, START, Flags, Storage
from relaax.replay.table import Sample, Table
from relaax.replay.writers import MissingSteps, Slot, Writers

Array = npt.NDArray[Any]


class NotReady(Exception):
    """What was asked for is not possible yet; try again."""


class Replay:
    """A storage, its tables, and the slots of its writers.

    Steps of a slot are numbered from 0 on by their writer. Steps that come twice, after a broken
    connection, are stored once; steps that come too early are refused.
    """

    def __init__(
        self,
        storage: Storage,
        tables: Mapping[str, Table | Mixed],
        writers: Writers,
    ) -> None:
        self._storage = storage
        self._tables = tables
        self._writers = writers
        self._changed = threading.Condition()
        self._duplicate_steps = 0
        self._actions = 0
        self._is_over = False

    @property
    def actions(self) -> int:
        """How many actions were ever stored: steps but those in which an episode was cut off."""
        return self._actions

    @property
    def schema(self) -> Schema:
        """What a step is."""
        return self._storage.schema

    def table_sizes(self) -> dict[str, int]:
        """Return how many items each table has."""
        with self._changed:
            return {name: len(table) for name, table in self._tables.items()}

    def open_writer(self, name: str, schema: Schema) -> list[str]:
        """Let ``name`` write steps of ``schema``; return in which columns it is another one."""
        differences = self.schema.differences(schema)
        if not differences:
            with self._changed:
                self._writers.open(name)
        return differences

    def close_writer(self, name: str) -> None:
        """Let no more be written by ``name``; its unfinished episodes end."""
        with self._changed:
            self._end_episodes(self._writers.close(name))

    def append(
        self,
        writer: str,
        environment: int,
        first: int,
        rows: Mapping[str, Array],
        flags: Flags,
        timeout_s: float = 0.0,
    ) -> int:
        """Store steps [N, ...] of an environment; ``first`` is the number of the first of them.

        An episode that begins before the one before it has ended cuts that one off. Return the
        number of the step that must come next. NotReady if the tables do not take the steps within
        ``timeout_s``; UnknownWriter, MissingSteps; ValueError for other columns.
        """
        self.schema.check(rows, len(flags))
        with self._changed:
            if self._is_over:  # what came before this may not have been stored
                return first + len(flags)
            known = self._known_steps(writer, environment, first)
            if known < len(flags):
                if not self._changed.wait_for(lambda: self._may_insert(len(flags)), timeout_s):
                    raise NotReady("the tables are full")
                if self._is_over:
                    return first + len(flags)
                # Meanwhile the same steps may have come again, and have been stored.
                known = self._known_steps(writer, environment, first)
            slot, new = self._writers.slot(writer, environment), slice(min(known, len(flags)), None)
            self._duplicate_steps += new.start or 0
            if known < len(flags):
                self._take(slot, {name: rows[name][new] for name in rows}, flags[new])
            return slot.next_step

    def sample(
        self, table: str, count: int, timeout_s: float, *, empty: Empty = np.empty
    ) -> Sample:
        """Draw ``count`` items of ``table``; NotReady if that is not possible within ``timeout_s``.

        Large arrays lie in what ``empty`` makes. KeyError for a table that does not exist.
        """
        source = self._tables[table]
        with self._changed:
            source.let_go()
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: source.may_draw(count), timeout_s):
                raise NotReady(
                    f"{len(source)} items are in {table}, of which {count} are not ready"
                )
            sample = source.draw(count, empty=empty)
            self._changed.notify_all()
            return sample

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items of ``table`` other priorities [N]; return how many of them are gone."""
        if not np.isfinite(priorities).all() or (priorities < 0).any():
            raise ValueError("priorities must be finite, and at least 0")
        with self._changed:
            return self._tables[table].update_priorities(keys, priorities)

    def reclaim(self) -> None:
        """End the episodes of writers that were silent for longer than their lease."""
        with self._changed:
            self._end_episodes(self._writers.expired())

    def end(self) -> None:
        """Acknowledge what still comes and store none of it, so that no writer waits any more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def stats(self) -> dict[str, float]:
        """Return counts by name."""
        with self._changed:
            counts: dict[str, float] = {
                "steps": len(self._storage),
                "steps stored": self._storage.stored,
                "steps twice": self._duplicate_steps,
                "actions stored": self._actions,
                "writers": len(self._writers),
            }
            for name, table in self._tables.items():
                counts[f"{name}/items"] = len(table)
                counts |= {f"{name}/{key}": value for key, value in asdict(table.counts).items()}
        return counts

    def _known_steps(self, writer: str, environment: int, first: int) -> int:
        """Return how many steps from ``first`` on are stored; MissingSteps before that one."""
        slot = self._writers.slot(writer, environment)
        if slot.next_step < first:
            raise MissingSteps(
                f"step {slot.next_step} of environment {environment} must come next, not {first}"
            )
        return slot.next_step - first

    def _take(self, slot: Slot, rows: Mapping[str, Array], flags: Flags) -> None:
        if flags[0] & START:
            self._end_episode(slot)
        places = self._storage.append(slot.number, rows, _with_ends(flags))
        slot.next_step += len(flags)
        self._actions += int(np.count_nonzero(flags & FINAL == 0))
        for table in self._tables.values():
            table.appended(slot.number, places)
        self._changed.notify_all()

    def _may_insert(self, count: int) -> bool:
        return self._is_over or all(table.may_insert(count) for table in self._tables.values())

    def _end_episode(self, slot: Slot) -> None:
        """Let the unfinished episode of ``slot``, if any, end in its newest state."""
        if self._storage.cut(slot.number) == NONE:
            return
        for table in self._tables.values():
            table.appended(slot.number, np.zeros(0, np.int64))

    def _end_episodes(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            self._end_episode(slot)
        self._changed.notify_all()


def _with_ends(flags: Flags) -> Flags:
    """Return flags [N] in which a step before a start ends its episode, at least by being cut off.

    Some steps may have been dropped between the two.
    """
    before = np.flatnonzero(flags[1:] & START)
    if len(before) == 0:
        return flags
    cut = before[flags[before] & ENDS == 0]
    if len(cut) == 0:
        return flags
    ended = flags.copy()
    ended[cut] |= FINAL
    return ended
