"""The first shard: it says which updates are applied in which order, and what is saved."""

import logging
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from relaax.algorithm_base import Checkpoint, FloatVector, Shard, Slice
from relaax.checkpoints.checkpoint_sets import new_set
from relaax.errors import CheckpointError, CheckpointMismatch
from relaax.parameters.process.shards.members import MemberInfo, Members, NotWhole, Said
from relaax.parameters.process.shards.orders import (
    Beginning,
    End,
    Heard,
    News,
    Order,
    OrderLog,
    Save,
    Update,
)
from relaax.parameters.process.shards.staging import Staging

_log = logging.getLogger(__name__)

#: How long all shards together may take to save.
SAVE_DEADLINE_S = 120.0

#: Who was cut off for a moment is back within this time.
RECONNECT_S = 5.0

#: How often those that wait look whether they still should.
LOOK_S = 0.5


class Leader:
    """Decides for all shards; every method may be called by many threads at once.

    It holds a slice of its own. ``initial`` [size] is what all slices begin with where there is no
    checkpoint. While a shard is away nothing is applied. One that has lost what it had makes all of
    them go back to the last checkpoint that all have saved.
    """

    def __init__(
        self,
        shard: Shard,
        part: Slice,
        initial: FloatVector,
        staging: Staging | None = None,
        members: Members | None = None,
    ) -> None:
        self._shard = shard
        self._part = part
        #: None as soon as there is a set to go back to.
        self._initial: FloatVector | None = initial
        self._staging = Staging() if staging is None else staging
        self._changed = threading.Condition()
        self._members = members or Members(shard)
        #: What all go back to: this shard's part, and the name of the whole.
        self._saved: tuple[Checkpoint, str] | None = None
        #: Whether all parts of a set are there but this shard's.
        self._is_writing = False
        self._is_closed = False
        #: Whether this shard is about to end, and the training is not.
        self._is_stopping = False
        #: Whether the training is over: the next checkpoint is the last one.
        self.is_over = False
        #: Why the shards cannot begin, and whether that is for a part that is not whole.
        self.failure: CheckpointMismatch | None = None
        self.is_damaged = False
        #: Called when a shard is about to end.
        self.on_leaving: Callable[[], object] = lambda: None
        self._orders = self._begin()

    @property
    def incarnation(self) -> int:
        """Random for each beginning."""
        return self._orders.beginning.incarnation

    @property
    def unsaved(self) -> list[Order]:
        """The orders that not all shards have saved."""
        return list(self._orders.orders)

    @property
    def began_with(self) -> int:
        """The global step that all shards have begun with, or shall begin with."""
        return self._orders.beginning.global_t

    def begin_with(self, checkpoint: Checkpoint, set_id: str, location: str) -> None:
        """Go on from a set of which this is the part of this shard, which was in ``location``."""
        with self._changed:
            self._part.restore(checkpoint, location)
            self._saved, self._initial = (checkpoint, set_id), None
            self.failure, self.is_damaged = None, False
            self._orders = self._begin()
            self._changed.notify_all()

    def stage(
        self, worker: int, sequence: int, incarnation: int, gradient: FloatVector, settled: int = 0
    ) -> int:
        """Keep a slice; return the present incarnation: if it is another, nothing was kept."""
        self._part.require_fitting(gradient)
        with self._changed:
            self._require_all()
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
            self._require_all()
            if incarnation == self.incarnation:
                self._commit(worker, sequence, steps)
            _, number, global_t = self._part.read()
            return self.incarnation, number, global_t

    def read(self, incarnation: int = 0, at_least: int = 0) -> tuple[int, FloatVector, int, int]:
        """Return the incarnation, this slice's values, their number, and the global step.

        What is committed has been applied here, so that nothing is waited for.
        """
        with self._changed:
            self._require_all()
            return self.incarnation, *self._part.read()

    def follow(self, member: MemberInfo, is_active: Callable[[], bool]) -> Iterator[News]:
        """Yield what a shard has to do, while its connection ``is_active``.

        ValueError for one that is none of this training.
        """
        self._require_fitting(member)
        connection = self._connect(member)
        incarnation, position = member.incarnation, member.position
        try:
            yield Heard()
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
            if said is Said.SAVED:
                self._members.note_saved(index, set_id)
            elif set_id:
                self._members.note_saved(index, set_id, text)
            elif said is Said.BEGUN and incarnation == self.incarnation:
                self._members.note_begun(index)
                if not self._say_if_back(index):
                    _log.info("%s has begun", self._members.name(index))
            elif said in (Said.FAILED, Said.DAMAGED) and incarnation == self.incarnation:
                name = self._members.name(index)
                self.is_damaged = said is Said.DAMAGED
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
        saved in time: then nothing is written here. A step is saved once: parts have the names of
        their steps, and another set of this step would take a good one's away, part by part.
        Nothing is saved before the first step.
        """
        set_id = new_set()
        with self._changed:
            if self._has_saved_this_step() or self._has_nothing_to_save():
                return False
            away = self._members.missing()
            if away:
                raise CheckpointError(f"nothing is saved: {away} is away")
            checkpoint = self._part.checkpoint()
            orders, position = self._orders, self._orders.end
            orders.add(Save(set_id, checkpoint.global_t, tuple(kept)))
            self._changed.notify_all()
            self._wait_for_parts(set_id, self.incarnation, deadline_s)
            self._is_writing = True
        try:
            sys.audit("relaax.shards.set")
            write(checkpoint, set_id)
        except BaseException:
            self._note_written(None)
            raise
        self._note_written((checkpoint, set_id))
        with self._changed:
            orders.forget_before(position)  # who has saved has followed them all
        return True

    def dismiss(self) -> None:
        """Let shards that are about to end do so: nothing is saved for them."""
        with self._changed:
            self._members.dismiss()
            self._changed.notify_all()

    def count(self, steps: int, add: Callable[[int], int]) -> int:
        """Let ``add`` count steps without a gradient, and return the global step.

        NotWhole while a shard is away: where it has lost what it had, all go back behind them.
        """
        with self._changed:
            self._require_all()
            return add(steps)

    def refuse_workers(self) -> None:
        """Answer no worker any more: what it brings would not be saved."""
        with self._changed:
            self._is_stopping = True

    def end(self) -> None:
        """Say that the training is over, and that all others may end."""
        with self._changed:
            self._orders.add(End())
            self._changed.notify_all()

    def close(self) -> None:
        """Let all connections of shards end."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def missing(self) -> str:
        """Return in words which shard is away, or has not begun; empty if none is."""
        with self._changed:
            return self._members.missing()

    def _require_all(self) -> None:
        """Raise NotWhole while a shard is away, or about to end: what is applied would be lost."""
        self._members.require_whole()
        if self._is_stopping:
            raise NotWhole(f"{self._members.name(1)} is about to end")

    def _begin(self) -> OrderLog:
        """Return a log that begins with what this shard has."""
        _, number, global_t = self._part.read()
        self._staging.clear()
        self._members.begin_anew()
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
        self._orders = self._begin()
        lost = global_t - self._orders.beginning.global_t
        if number == self._orders.beginning.number and not lost:
            _log.info("a shard begins anew: all shards do, at global step %d", global_t)
            return
        _log.warning(
            "a shard has lost what it had: all shards go back to global step %d; %d updates and "
            "%d steps are lost",
            self._orders.beginning.global_t,
            number - self._orders.beginning.number,
            lost,
        )

    def _let_leave(self, index: int) -> None:
        """Let all shards save before one of them ends; nothing that it would lose is applied."""
        if self.is_over:
            return
        with self._changed:
            self._members.let_leave(index)
            name = self._members.name(index)
        _log.warning("%s is about to end: all save, and nothing is learnt until it is back", name)
        self.on_leaving()

    def _note_written(self, saved: tuple[Checkpoint, str] | None) -> None:
        """Take note that a set is whole, if it is, and that shards may go back to the last one."""
        with self._changed:
            self._is_writing = False
            if saved is not None:
                self._saved, self._initial = saved, None
                self._members.forget_sets()
            self._changed.notify_all()

    def _has_saved_this_step(self) -> bool:
        return self._saved is not None and self._saved[0].global_t == self._part.read()[2]

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
        self._orders.add(Update(worker, sequence, number, global_t, steps))
        self._changed.notify_all()

    def _connect(self, member: MemberInfo) -> int:
        with self._changed:
            # Of a set that is being written nobody knows whether it is the last one. To go back to
            # the one before would leave a checkpoint that is ahead of what all have then.
            self._changed.wait_for(lambda: not self._is_writing or self._goes_on(member))
            goes_on = self._goes_on(member)
            if not goes_on and self._orders.end:  # the others have what it does not have
                self._go_back()
            index = member.shard.index
            connection = self._members.connect(member, goes_on)
            if goes_on:
                self._say_if_back(index)
            self._changed.notify_all()
            return connection

    def _say_if_back(self, index: int) -> bool:
        is_back = self._members.note_back(index)
        if is_back:
            _log.warning("%s is back", self._members.name(index))
        return is_back

    def _goes_on(self, member: MemberInfo) -> bool:
        """Return whether a shard has what all have begun with, and can follow from where it is."""
        return member.incarnation == self.incarnation and self._orders.has(member.position)

    def _disconnect(self, member: MemberInfo, connection: int) -> None:
        index = member.shard.index
        with self._changed:
            if not self._members.is_present(index, connection):
                return
            self._members.disconnect(index, connection)
            if not (self._members.leaves(index) or self._is_closed or self.is_over):
                name = self._members.name(index)
                _log.warning("%s is away: nothing is learnt until it is back", name)
            self._changed.notify_all()

    def _next(
        self, member: MemberInfo, connection: int, incarnation: int, position: int
    ) -> Beginning | Order | tuple[()] | None:
        """Return what comes next; None if nothing came for a while, () for an old connection."""
        with self._changed:
            until = time.monotonic() + LOOK_S
            while True:
                if not self._members.is_present(member.shard.index, connection):
                    return ()
                if incarnation != self.incarnation:
                    return self._orders.beginning
                if position < self._orders.end:
                    return self._orders.at(position)
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

    def _wait_for_parts(self, set_id: str, incarnation: int, deadline_s: float) -> None:
        """Wait until all others have saved; CheckpointError where they do not."""
        now = time.monotonic()
        until, there_at = now + deadline_s, now
        while not self._members.have_saved(set_id):
            if incarnation != self.incarnation:
                raise CheckpointError("nothing is saved: the shards have begun anew meanwhile")
            now, away = time.monotonic(), self._members.missing()
            there_at = there_at if away else now
            if now > there_at + RECONNECT_S:
                raise CheckpointError(f"nothing is saved: {away} has gone meanwhile")
            if now > until:
                raise CheckpointError(f"nothing is saved: a shard took longer than {deadline_s:g}s")
            self._changed.wait(LOOK_S)
