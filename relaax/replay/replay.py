"""Stored steps and the tables over them, for many threads."""

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from time import monotonic, sleep
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.replay.array_bytes import below, named
from relaax.replay.counts import LearntSteps, Times, share_figures
from relaax.replay.intake import Intake, StepCounts
from relaax.replay.pacing import PacedTable
from relaax.replay.saved import require_sound
from relaax.replay.schema import Schema
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.storage import Empty, Flags, Storage
from relaax.replay.table import Sample, Table, TableState, require_priorities
from relaax.replay.writers import Places, Slot, Writers

Array = npt.NDArray[Any]


#: The pause between two pieces of a save's copy: other threads run meanwhile.
PAUSE_S = 0.001

_log = logging.getLogger(__name__)

#: ``watch`` explains why items may not be drawn yet, for at most so many of them.
MOST_WAITED_FOR = 1_000_000


Result = TypeVar("Result")


class NotReady(Exception):
    """The request is not possible yet; try again."""


@dataclass(frozen=True)
class ReplayState:
    """How a table is, how many steps are stored, and how many actions ever were."""

    table: TableState
    steps: int
    actions: int
    #: Why not as many items may be drawn as were waited for; "" where they may.
    reason: str = ""


class Replay:
    """A storage, its tables, and the slots of its writers.

    Steps of a slot are numbered from 0 on by their writer. Steps that come twice, after a broken
    connection, are stored once; steps that come too early are refused.
    """

    def __init__(self, storage: Storage, tables: Mapping[str, Table], writers: Writers) -> None:
        self._storage = storage
        #: By name; others than their owner look at them within ``alone``.
        self.tables = tables
        self._writers = writers
        self._places = Places(storage.capacity, tables.values(), writers)
        #: Times of inserting and drawing, without waiting; the service adds its own.
        self.times = Times()
        self._changed = threading.Condition()
        self._intake = Intake(storage, tables.values(), writers, self._changed)
        self._on_stored: Callable[[int], object] = lambda actions: None
        self._is_over = self._takes_memory = False
        self._lacks_memory: Callable[[int], str] = lambda more: ""
        #: By table: the number of the latest request, if so many items were not there.
        self._unmet: dict[str, tuple[int, int | None]] = {}
        self._paced = [table for table in tables.values() if isinstance(table, PacedTable)]

    def __len__(self) -> int:
        """Return how many steps there are now."""
        return len(self._storage)

    @property
    def stored(self) -> int:
        """How many steps were ever stored."""
        return self._storage.stored

    @property
    def changes(self) -> int:
        """A count that changes with the contents: while it is the same, so are they.

        It goes on from the count of restored contents, and is never less than the steps ever stored
        and the items ever drawn together.
        """
        return self._intake.counts.changes

    @property
    def actions(self) -> int:
        """How many actions were ever stored: steps but those in which an episode was cut off."""
        return self._intake.counts.actions

    def on_stored(self, call: Callable[[int], object]) -> None:
        """Let ``call`` be called with the number of actions, whenever some have been stored."""
        self._on_stored = call

    def count_lost(self, steps: int) -> None:
        """Count steps that a replay before this one had, and that are not here."""
        with self._changed:
            self._intake.counts.lost += steps

    def alone(self, call: Callable[[], Result]) -> Result:
        """Return the result of ``call``, which may look at tables, and change them.

        No other thread does meanwhile.
        """
        with self._changed:
            result = call()
            self._changed.notify_all()
            return result

    @property
    def schema(self) -> Schema:
        """The schema of a step."""
        return self._storage.schema

    def table_kinds(self) -> dict[str, str]:
        """Return a description of each table's items."""
        return {name: table.kind for name, table in self.tables.items()}

    def table_sizes(self) -> dict[str, int]:
        """Return how many items each table has."""
        with self._changed:
            return {name: len(table) for name, table in self.tables.items()}

    def open_writer(self, name: str, schema: Schema) -> list[str]:
        """Let ``name`` write steps of ``schema``; return the lines in which it differs.

        Open types become the types of ``schema``, or, if these are open too, of the first steps.
        If there is no memory for them, the reason is returned.
        """
        columns = schema.columns.items()
        types = {each: column.dtype for each, column in columns if not column.is_open}
        with self._changed:
            differences = self.schema.differences(schema)
            if not differences and (lack := self._lack_of_memory(types)):
                return [lack]
            if not differences:
                self._settle(types)
                self._intake.leave(self._writers.open(name))
        return differences

    def schema_of(self, writer: str) -> Schema:
        """Return the schema of a step of ``writer``; UnknownWriter unless it is open."""
        with self._changed:
            self._writers.require(writer)
            return self.schema

    @property
    def most_environments(self) -> int:
        """How many environments can play at once and all be learnt from."""
        return self._places.most

    @property
    def lease_s(self) -> float:
        """How often a writer must be heard of, so that it keeps its slots."""
        return self._writers.lease_s

    def take_memory(self, lacks: Callable[[int], str] = lambda more: "") -> None:
        """Take all memory for steps from the system now; nothing was stored yet.

        Memory of columns with an open type is taken when the type is known; ``lacks`` returns then
        why so many bytes more cannot be taken, or "".
        """
        self._lacks_memory = lacks
        self._take_memory()

    def _take_memory(self) -> None:
        self._takes_memory = True
        for column in self._storage.columns.values():
            column.fill(0)  # the system gives pages of zeros when they are written

    def hear_writer(self, name: str) -> None:
        """Take note that a writer is connected; UnknownWriter."""
        with self._changed:
            self._writers.hear(name)

    def close_writer(self, name: str) -> None:
        """Let no more be written by ``name``; its unfinished episodes end."""
        with self._changed:
            self._intake.counts.changes += 1
            self._intake.leave(self._writers.close(name))
            for table in self._paced:
                table.pacing.forget(name)

    def admit(
        self,
        writer: str,
        environments: Sequence[int],
        version: int,
        timeout_s: float = 0.0,
        *,
        has_delivered: bool = True,
    ) -> None:
        """Let a rollout begin in each environment, with parameters of ``version``; see ``Pacing``.

        NotReady if it may not within ``timeout_s``, or if newer parameters are there: ask again.
        UnknownWriter.
        """
        deadline = monotonic() + timeout_s
        with self._changed:
            slots = [self._writers.slot(writer, each).number for each in environments]
            for table in self._paced:
                while not self._is_over and (
                    why := table.keeps_waiting(writer, slots, version, has_delivered=has_delivered)
                ):
                    self._changed.notify_all()  # others may be needed now
                    left = deadline - monotonic()
                    if version < table.pacing.version or not self._changed.wait(max(0.0, left)):
                        raise NotReady(why)

    def release(self, writer: str, environments: Sequence[int]) -> None:
        """End what environments have begun: they go on no more, or with other steps."""
        with self._changed:
            for environment in environments:
                slot = self._writers.slot(writer, environment)
                self._intake.leave([slot])
                self._writers.renumber(slot)

    def at_version(self, table: str, version: int) -> None:
        """Note which parameters the next batch of ``table`` is learnt from with."""
        with self._changed:
            source = self.tables[table]
            if isinstance(source, PacedTable):
                source.at_version(version)
                self._changed.notify_all()

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

        An episode that begins before the end of the previous one cuts that off, and so does a
        ``GAP``: later steps lie in rows apart. Return the number of the next expected step.
        NotReady if the tables do not take all steps within ``timeout_s``: taken steps are
        recognised when they come again. Steps of an environment without a place are dropped; see
        ``Places``. UnknownWriter, MissingSteps; ValueError for other columns.
        """
        self._settle({name: row.dtype for name, row in rows.items()})
        self.schema.check(rows, len(flags))
        deadline, known = monotonic() + timeout_s, 0
        with self._changed:
            while not self._is_over:
                slot = self._writers.slot(writer, environment)
                before, known = known, min(self._intake.known(slot, environment, first), len(flags))
                self._intake.counts.duplicate += known - before
                if known == len(flags):
                    self._intake.counts.changes += len(flags)
                    slot.may_have_gap = False
                    return slot.next_step
                piece = self._intake.piece(flags, known)
                lack = self._places.lack(writer, slot)
                why = lack or self._keeps_out(slot, flags[piece])
                if not why:
                    with self.times.of("insert"):
                        taken = {name: rows[name][piece] for name in rows}
                        self._on_stored(self._intake.take(slot, taken, flags[piece]))
                    known = piece.stop
                elif lack and self._places.is_refused(writer, environment, slot, lack):
                    slot.next_step = first + len(flags)
                    break
                elif not self._changed.wait(max(0.0, deadline - monotonic())):
                    raise NotReady(why)
            self._intake.counts.changes += len(flags) - known
            self._intake.counts.dropped += len(flags) - known
            return first + len(flags)

    def sample(
        self,
        table: str,
        count: int,
        timeout_s: float,
        charge: int | None = None,
        *,
        empty: Empty = np.empty,
    ) -> Sample:
        """Draw ``count`` items of ``table``; NotReady if that is not possible within ``timeout_s``.

        The ratio of the table counts them as ``charge`` draws, if given. Large arrays lie in memory
        from ``empty``. KeyError for a table that does not exist.
        """
        source = self.tables[table]
        with self._changed:
            source.let_go()
            self._changed.notify_all()
            if source.holds_back(count, charge):
                self._unmet[table] = count, charge  # steps that are kept out may make it possible
                self._changed.notify_all()
            self._changed.wait_for(lambda: not source.holds_back(count, charge), timeout_s)
            if why := source.holds_back(count, charge):
                raise NotReady(why)
            self._unmet.pop(table, None)
            self._intake.counts.changes += count
            with self.times.of("sample"):
                sample = source.draw(count, charge, empty=empty)
            self._changed.notify_all()
            return sample

    def watch(self, table: str, at_least: float, timeout_s: float) -> ReplayState:
        """Wait until ``at_least`` items of ``table`` may be drawn, or ``timeout_s`` are over.

        KeyError for a table that does not exist.
        """
        source = self.tables[table]
        with self._changed:
            if at_least > 0:
                source.let_go()
                self._changed.notify_all()
            self._changed.wait_for(lambda: source.state().allowance >= at_least, timeout_s)
            state, count = source.state(), math.ceil(max(1.0, min(at_least, MOST_WAITED_FOR)))
            reason = source.holds_back(count) if state.allowance < count else ""
            return ReplayState(state, len(self._storage), self.actions, reason)

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items of ``table`` other priorities [N]; return how many of them are gone."""
        require_priorities(priorities)
        with self._changed:
            self._intake.counts.changes += 1
            return self.tables[table].update_priorities(keys, priorities)

    def reclaim(self) -> None:
        """End the episodes of writers that were silent for longer than their lease.

        Warn of environments that nothing is learnt from for long.
        """
        with self._changed:
            slots = self._writers.expired()
            self._intake.counts.changes += len(slots)
            self._intake.leave(slots)
            labels = self._writers.labels()
            complaints = [learnt.complaint(labels) for learnt in self._learnt()]
        for complaint in filter(None, complaints):
            _log.warning(complaint)

    def end(self) -> None:
        """Acknowledge steps from now on without storing them, so that no writer waits."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def evict(self, older_than_s: float) -> None:
        """Evict the oldest steps."""
        with self._changed:
            before = self._storage.evicted
            self._storage.evict_before(monotonic() - older_than_s)
            self._intake.counts.changes += self._storage.evicted - before
            self._changed.notify_all()

    def stats(self) -> dict[str, float]:
        """Return counts by name."""
        with self._changed:
            counts: dict[str, float] = {
                "steps stored": self._storage.stored,
                "steps twice": self._intake.counts.duplicate,
                "steps lost": self._intake.counts.lost,
                "steps dropped": self._intake.counts.dropped,
                "steps evicted": self._storage.evicted,
                "actions stored": self._intake.counts.actions,
                "items drawn": self._drawn(),
                "steps": len(self._storage),
                "capacity": self._storage.capacity,
                "writers": len(self._writers),
                **self.times.counts(),
            }
            for name, table in self.tables.items():
                counts[f"{name}/items"] = len(table)
                counts |= {f"{name}/{key}": value for key, value in asdict(table.counts).items()}
                if isinstance(table, PacedTable):
                    counts[f"{name}/under way"] = len(table.pacing.running)
                    counts[f"{name}/admitted beyond"] = table.pacing.exceeded
                    counts[f"{name}/most versions behind"] = table.pacing.most_behind
            for learnt in self._learnt():
                counts |= share_figures(learnt.shares(self._writers.labels()))
            return counts

    def contents(self) -> dict[str, Array]:
        """Return copies of all stored steps, and the state that another replay needs to go on.

        The copy is of one moment; other threads may write and draw while columns are copied.
        """
        with self._changed:
            arrays = named("storage/", self._storage.contents())
            for name, table in self.tables.items():
                arrays |= named(f"table/{name}/", table.contents())
            *counts, changes = astuple(self._intake.counts)
            arrays |= {"writers": self._writers.contents(), "counts": np.array(counts)}
            arrays["changes"] = np.array(changes)
            snapshot = self._storage.snapshot()
        try:
            is_copied = False
            while not is_copied:
                sleep(PAUSE_S)
                with self._changed:
                    is_copied = not snapshot.copy_some()
        finally:
            with self._changed:
                self._storage.forget(snapshot)
        return arrays | named("storage/column/", snapshot.columns)

    def restore(self, contents: Mapping[str, Array]) -> None:
        """Go on from the ``contents`` of a replay of the same configuration; this one is new.

        DamagedCheckpoint, which names the array and the row, for contents that no replay has saved;
        nothing is changed then. Steps stored after the save are lost: a writer's next steps may
        have a gap before them, which ends their episode and is counted.
        """
        require_sound(contents, self._storage, self.tables)
        with self._changed:
            if contents["storage/counts"][0]:  # something was stored
                names = self.schema.columns
                self._settle({each: contents[f"storage/column/{each}"].dtype for each in names})
            self._storage.restore(below("storage/", contents))
            for name, table in self.tables.items():
                table.restore(below(f"table/{name}/", contents))
            self._writers.restore(contents["writers"])
            # Older contents lack this count: their saves are named by this sum.
            changes = int(contents.get("changes", self.stored + self._drawn()))
            self._intake.counts = StepCounts(*[*contents["counts"].tolist(), changes])

    def _settle(self, types: Mapping[str, np.dtype[Any]]) -> None:
        """Let open columns be of ``types``; ConfigurationError without the memory for them."""
        if self.schema.is_open:
            with self._changed:
                if lack := self._lack_of_memory(types):
                    raise ConfigurationError(lack)
                self._storage.settle(types)
                if self._takes_memory and not self._storage.stored:
                    self._take_memory()

    def _lack_of_memory(self, types: Mapping[str, np.dtype[Any]]) -> str:
        """Return why open columns cannot be of ``types``; "" if they can."""
        more = self._storage.capacity * (self.schema.settled(types).bytes - self.schema.bytes)
        return self._lacks_memory(more) if more > 0 else ""

    def _learnt(self) -> list[LearntSteps]:
        return [table.learnt for table in self.tables.values() if table.learnt is not None]

    def _drawn(self) -> int:
        return sum(table.counts.drawn for table in self.tables.values())

    def _keeps_out(self, slot: Slot, flags: Flags) -> str:
        """Return why a table takes no more steps of ``slot``; "" if all do, or one lacks them."""
        lacks = any(self.tables[name].holds_back(*asked) for name, asked in self._unmet.items())
        return "" if lacks else self._intake.keeps_out(slot, flags)
