"""The first shard: it says which updates are applied in which order, and what is saved."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from relaax.algorithm_base import Checkpoint, FloatVector, Shard, Slice
from relaax.errors import CheckpointError, CheckpointMismatch
from relaax.server.parameter_server.shards.orders import (
    Beginning,
    End,
    Order,
    OrderLog,
    Save,
    Update,
)
from relaax.server.parameter_server.shards.sets import new_set
from relaax.server.parameter_server.shards.staging import Staging

_log = logging.getLogger(__name__)

#: How long all shards together may take to save.
SAVE_DEADLINE_S = 120.0

#: How often those that wait look whether they still should.
_LOOK_S = 0.5


class NotWhole(Exception):
    """A shard is away, or has not begun yet: nothing is applied until it is there."""


class Said(Enum):
    """What another shard reports."""

    BEGUN = "begun"
    SAVED = "saved"
    FAILED = "failed"
    #: It is about to end: all should save before.
    LEAVES = "leaves"


@dataclass(frozen=True)
class MemberInfo:
    """Another shard, as it presents itself."""

    shard: Shard
    address: str
    #: Of the whole vector.
    size: int
    #: What it has begun with, 0 for nothing, and how many orders it has followed since.
    incarnation: int
    position: int


@dataclass
class _Member:
    """Another shard, as it is known here."""

    address: str
    #: Which of its connections is the present one.
    connection: int = 0
    is_connected: bool = False
    has_begun: bool = False
    #: Whether it is about to end.
    leaves: bool = False
    #: The sets of which it has saved its part, or why not.
    saved: dict[str, str | None] = field(default_factory=dict)


class Leader:
    """Decides for all shards; every method may be called by many threads at once.

    It holds a slice of its own. ``initial`` [size] is what all slices begin with where there is no
    checkpoint. While a shard is away nothing is applied. One that has lost what it had makes all of
    them go back to the last checkpoint that all have saved.
    """

    def __init__(
        self, shard: Shard, part: Slice, initial: FloatVector, staging: Staging | None = None
    ) -> None:
        self._shard = shard
        self._part = part
        #: None as soon as there is a set to go back to.
        self._initial: FloatVector | None = initial
        self._staging = staging or Staging()
        self._changed = threading.Condition()
        self._members: dict[int, _Member] = {}
        #: What all go back to: this shard's part, and the name of the whole.
        self._saved: tuple[Checkpoint, str] | None = None
        self._is_closed = False
        #: Whether the training is over: the next checkpoint is the last one.
        self.is_over = False
        #: Why the shards cannot begin.
        self.failure: CheckpointMismatch | None = None
        #: Called when a shard is about to end.
        self.on_leaving: Callable[[], object] = lambda: None
        self._log = self._begin()

    @property
    def incarnation(self) -> int:
        """Random for each beginning."""
        return self._log.beginning.incarnation

    def begin_with(self, checkpoint: Checkpoint, set_id: str, location: str) -> None:
        """Go on from a set of which this is the part of this shard, which was in ``location``."""
        with self._changed:
            self._part.restore(checkpoint, location)
            self._saved, self._initial = (checkpoint, set_id), None
            self._log = self._begin()
            self._changed.notify_all()

    def stage(
        self, worker: int, sequence: int, incarnation: int, gradient: FloatVector, settled: int = 0
    ) -> int:
        """Keep a slice; return the present incarnation: if it is another, nothing was kept."""
        self._part.require_fitting(gradient)
        with self._changed:
            self._require_whole()
            if incarnation == self.incarnation:
                self._staging.put(worker, sequence, gradient, settled)
            return self.incarnation

    def commit(
        self, worker: int, sequence: int, incarnation: int, steps: int
    ) -> tuple[int, int, int]:
        """Let all shards apply what a worker has staged; return incarnation, number, global step.

        Nothing is applied where the incarnation is another, or the training is over. ValueError
        where nothing was staged.
        """
        with self._changed:
            self._require_whole()
            if incarnation == self.incarnation:
                self._commit(worker, sequence, steps)
            _, number, global_t = self._part.read()
            return self.incarnation, number, global_t

    def read(self, incarnation: int = 0, at_least: int = 0) -> tuple[int, FloatVector, int, int]:
        """Return the incarnation, this slice's values, their number, and the global step.

        What is committed has been applied here, so that nothing is waited for.
        """
        with self._changed:
            self._require_whole()
            return self.incarnation, *self._part.read()

    def follow(
        self, member: MemberInfo, is_active: Callable[[], bool]
    ) -> Iterator[Beginning | Order]:
        """Yield what a shard has to do, while its connection ``is_active``.

        ValueError for one that is none of this training.
        """
        self._require_fitting(member)
        connection = self._connect(member)
        incarnation, position = member.incarnation, member.position
        try:
            while is_active():
                news = self._next(member, connection, incarnation, position)
                if isinstance(news, tuple):
                    return
                if news is None:
                    continue
                if isinstance(news, Beginning):
                    incarnation, position = news.incarnation, 0
                else:
                    position += 1
                yield news
        finally:
            self._disconnect(member, connection)

    def report(
        self, index: int, said: Said, incarnation: int, set_id: str = "", text: str = ""
    ) -> None:
        """Take note of what another shard has done."""
        if said is Said.LEAVES:
            self._let_leave(index)
            return
        with self._changed:
            member = self._members.get(index)
            if member is None:
                return
            if said is Said.SAVED:
                member.saved[set_id] = None
            elif set_id:
                member.saved[set_id] = text
            elif said is Said.BEGUN and incarnation == self.incarnation:
                member.has_begun = True
                _log.info("%s has begun", self._name(index))
            elif said is Said.FAILED and incarnation == self.incarnation:
                name = self._name(index)
                self.failure = CheckpointMismatch(f"the checkpoint is not whole: {name}: {text}")
            self._changed.notify_all()

    def save(
        self,
        kept: Sequence[int],
        write: Callable[[Checkpoint, str], None],
        deadline_s: float = SAVE_DEADLINE_S,
    ) -> bool:
        """Let all shards save; then ``write`` this one's part, which makes the set whole.

        Return whether anything was saved.

        ``kept`` are the steps of the checkpoints that are there. CheckpointError if a shard has not
        saved in time: then nothing is written here. Where nothing has changed since, nothing is
        saved again, and nothing before the first step.
        """
        set_id, until = new_set(), time.monotonic() + deadline_s
        with self._changed:
            if self._has_saved_this() or self._has_nothing_to_save():
                return False
            away = self._missing()
            if away:
                raise CheckpointError(f"nothing is saved: {away} is away")
            checkpoint = self._part.checkpoint()
            self._log.add(Save(set_id, checkpoint.global_t, tuple(kept)))
            incarnation = self.incarnation
            self._changed.notify_all()
            while (left := until - time.monotonic()) > 0 and not self._is_saved(set_id):
                if incarnation != self.incarnation:
                    raise CheckpointError("nothing is saved: the shards have begun anew meanwhile")
                self._changed.wait(min(left, _LOOK_S))
            if not self._is_saved(set_id):
                raise CheckpointError(f"nothing is saved: a shard took longer than {deadline_s:g}s")
        write(checkpoint, set_id)
        with self._changed:
            self._saved, self._initial = (checkpoint, set_id), None
            for member in self._members.values():
                member.saved.clear()
        return True

    def end(self) -> None:
        """Say that the training is over, and that all others may end."""
        with self._changed:
            self._log.add(End())
            self._changed.notify_all()

    def close(self) -> None:
        """Let all connections of shards end."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def missing(self) -> str:
        """Return in words which shard is away, or has not begun; empty if none is."""
        with self._changed:
            return self._missing()

    def _begin(self) -> OrderLog:
        """Return a log that begins with what this shard has."""
        _, number, global_t = self._part.read()
        self._staging.clear()
        for member in self._members.values():
            member.has_begun = False
        incarnation = secrets.randbits(63) + 1
        if self._saved is None:
            beginning = Beginning(incarnation, number, global_t, "", self._initial)
        else:
            beginning = Beginning(incarnation, number, global_t, self._saved[1], None)
        return OrderLog(beginning)

    def _go_back(self) -> None:
        """Let all shards go back to the last set."""
        _, number, global_t = self._part.read()
        if self._saved is not None:
            self._part.restore(self._saved[0], "memory")
        elif self._initial is not None:
            self._part.begin_with(self._initial[self._part.begin : self._part.end], 0, 0)
        self._log = self._begin()
        lost = global_t - self._log.beginning.global_t
        if number == self._log.beginning.number and not lost:
            _log.info("a shard begins anew: all shards do, at global step %d", global_t)
            return
        _log.warning(
            "a shard has lost what it had: all shards go back to global step %d; %d updates and "
            "%d steps are lost",
            self._log.beginning.global_t,
            number - self._log.beginning.number,
            lost,
        )

    def _let_leave(self, index: int) -> None:
        """Let all shards save before one of them ends; nothing that it would lose is applied."""
        if self.is_over:
            return
        with self._changed:
            member = self._members.get(index)
            if member is not None:
                member.leaves = True
        self.on_leaving()

    def _has_saved_this(self) -> bool:
        if self._saved is None:
            return False
        _, number, global_t = self._part.read()
        return (self._saved[0].version, self._saved[0].global_t) == (number, global_t)

    def _has_nothing_to_save(self) -> bool:
        """Return whether no step was taken: such a set would keep other networks from starting."""
        _, number, global_t = self._part.read()
        return self._saved is None and number == global_t == 0

    def _commit(self, worker: int, sequence: int, steps: int) -> None:
        gradient = self._staging.take(worker, sequence)
        if gradient is None:
            raise ValueError("nothing was staged that could be committed")
        applied = self._part.apply(gradient, steps)
        if applied is None:
            return
        number, global_t = applied
        self._log.add(Update(worker, sequence, number, global_t, steps))
        self._changed.notify_all()

    def _connect(self, member: MemberInfo) -> int:
        with self._changed:
            known = self._members.setdefault(member.shard.index, _Member(member.address))
            known.address = member.address
            known.connection += 1
            known.is_connected, known.leaves = True, False
            goes_on = member.incarnation == self.incarnation and self._log.has(member.position)
            if not goes_on:
                known.has_begun = False
                if self._log.end:  # the others have what it does not have
                    self._go_back()
            self._changed.notify_all()
            return known.connection

    def _disconnect(self, member: MemberInfo, connection: int) -> None:
        with self._changed:
            known = self._members[member.shard.index]
            if known.connection == connection:
                known.is_connected = False
                if not (known.leaves or self._is_closed or self.is_over):
                    name = self._name(member.shard.index)
                    _log.warning("%s is away: nothing is learnt until it is back", name)
                self._changed.notify_all()

    def _next(
        self, member: MemberInfo, connection: int, incarnation: int, position: int
    ) -> Beginning | Order | tuple[()] | None:
        """Return what comes next; None if nothing came for a while, () for an old connection."""
        with self._changed:
            until = time.monotonic() + _LOOK_S
            while True:
                if self._members[member.shard.index].connection != connection:
                    return ()
                if incarnation != self.incarnation:
                    return self._log.beginning
                if position < self._log.end:
                    return self._log.at(position)
                if self._is_closed:
                    return ()
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(left)

    def _require_fitting(self, member: MemberInfo) -> None:
        if member.shard.count != self._shard.count or member.shard.is_first:
            raise ValueError(f"this is shard {self._shard}, and {member.shard} is none of its kind")
        if member.size != self._part.size:
            raise ValueError(
                f"shard {member.shard} is of {member.size:,} parameters, this one of "
                f"{self._part.size:,}: do all shards read one configuration?"
            )

    def _require_whole(self) -> None:
        missing = self._missing()
        if missing:
            raise NotWhole(f"{missing} is away, or has not begun yet")
        for index, member in self._members.items():
            if member.leaves:
                raise NotWhole(f"{self._name(index)} is about to end")

    def _missing(self) -> str:
        for index in range(2, self._shard.count + 1):
            member = self._members.get(index)
            if member is None or not member.is_connected or not member.has_begun:
                return self._name(index)
        return ""

    def _name(self, index: int) -> str:
        member = self._members.get(index)
        where = f" at {member.address}" if member else ""
        return f"shard {Shard(index, self._shard.count)}{where}"

    def _is_saved(self, set_id: str) -> bool:
        """Return whether all others have saved; CheckpointError if one could not."""
        parts = [member.saved.get(set_id, "not yet") for member in self._members.values()]
        for index, member in self._members.items():
            text = member.saved.get(set_id)
            if text is not None:
                raise CheckpointError(f"nothing is saved: {self._name(index)}: {text}")
        return all(part is None for part in parts)
