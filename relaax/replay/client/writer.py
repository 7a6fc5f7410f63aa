"""Sends steps to a replay server, in order, beside acting."""

import logging
import math
import secrets
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy as np

from relaax.errors import ConfigurationError, RelaaxError
from relaax.replay import replay_pb2
from relaax.replay.client.rollout_counts import RolloutCounts
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.replay import NotReady
from relaax.replay.schema import Schema
from relaax.replay.specs import MOST_STEPS_AT_ONCE, MOST_WAITING
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import GAP, START, Flags
from relaax.replay.writers import UnknownWriter

_log = logging.getLogger(__name__)

Types = Mapping[str, np.dtype[Any]]

#: A message has at least so many steps, unless its first one has waited for ``LONGEST_WAIT_S``; at
#: most about ``MOST_STEPS_AT_ONCE``.
STEPS_AT_ONCE = 64
LONGEST_WAIT_S = 0.05

#: Pause after a call that failed, doubled up to the second one.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0

#: The log reports dropped steps at this interval.
SAY_EVERY_S = 10.0

#: How often ``put``, while it waits for room, checks whether to give up.
_LOOK_S = 0.1

#: A writer without steps lets the server hear of it so often, of the time after which it would
#: lose its slots.
BEATS = 4

#: How long one call waits for the admission of rollouts, and the pause between two calls.
ADMISSION_S, ADMISSION_PAUSE_S = 0.5, 0.01

#: How long ``close`` waits for the thread.
CLOSE_DEADLINE_S = 1.0


class _OtherTypes(Exception):
    """The server stores columns of other types than these steps have."""


class WriterObserver:
    """Hears of the steps of a writer, on its sending thread and on the thread that puts them.

    A step in which an episode was cut off has no action. Actions that wait when the writer is
    closed, and are not acknowledged, are neither delivered nor dropped: they may be stored.
    """

    def goes_on(self) -> bool:
        """Return whether to wait on; asked repeatedly while there is no room for steps."""
        return True

    def delivered(self, actions: int) -> None:
        """Take note of acknowledged actions."""

    def dropped_actions(self, actions: int) -> None:
        """Take note of dropped actions."""

    def dropped(self, steps: int) -> None:
        """Take note of newly dropped steps; on the sending thread, or at the close."""

    def refused(self, reason: str) -> None:
        """Take note why steps are not taken; called repeatedly."""

    def not_admitted(self) -> None:
        """Get newer parameters, if they come by no other way: older ones are not admitted."""


class ReplayWriter:
    """An ``ExperienceSink`` of steps that sends them on a thread of its own.

    At most about ``most_waiting`` steps wait. Then ``put`` waits for room, until the server has not
    answered for ``timeout_s``, or ``observer`` does not go on; for its first answer
    ``first_timeout_s``, if this is given. After that, or at once if it
    ``drops``, steps are dropped. An environment goes on with its next episode as soon as there is
    room; in the middle of one when the queue is half empty, after a ``GAP``, unless only
    ``whole_episodes`` are of use. ``name`` is unique; drawn if omitted. After its first steps, or
    at once if it was opened before, with ``lease_s``, the writer keeps in touch with the server,
    however long the next ones take, as long as this process lives. With the length of ``rollouts``
    each of them is begun when the server has admitted it: see ``admits``.
    """

    def __init__(
        self,
        stub: ReplayStub,
        schema: Schema,
        observer: WriterObserver | None = None,
        *,
        most_waiting: int = MOST_WAITING,
        drops: bool = False,
        timeout_s: float = 5.0,
        first_timeout_s: float | None = None,
        name: str | None = None,
        whole_episodes: bool = False,
        lease_s: float = 0.0,
        rollouts: int | None = None,
    ) -> None:
        self._stub = stub
        self._schema = schema
        self._observer = observer or WriterObserver()
        self._name = name or secrets.token_hex(16)
        self._most_waiting = most_waiting
        self._steps_at_once = min(STEPS_AT_ONCE, max(1, most_waiting // 2))
        self._drops = drops
        self._timeout_s = timeout_s
        #: Until the server has answered.
        self._first_timeout_s = None if drops else first_timeout_s
        self._whole_episodes = whole_episodes
        self._queue: deque[StepBatch] = deque()
        self._waiting = 0
        self._oldest_at = 0.0
        #: Since when the server does not answer; None if it does, as far as is known.
        self._away_since: float | None = None
        #: Environments of which a step of the present episode was dropped.
        self._skips: set[int] = set()
        #: By environment: the number of its next step.
        self._next: dict[int, int] = {}
        #: How many steps were dropped, how many of them were reported, and are in the log.
        self._dropped = self._reported = self._said = 0
        self._say_at = 0.0
        self._changed = threading.Condition()
        self._closes = False
        #: Whether the waiting steps have been counted as dropped: later answers count no more.
        self._is_over = False
        self._is_open = False
        self._rollouts = None if rollouts is None else RolloutCounts(rollouts)
        #: Whether waiting steps are sent however few they are: rollouts wait for an admission.
        self._hurries = False
        #: How long the server may hear nothing, and until when.
        self._silence_s = lease_s / BEATS if lease_s > 0 else math.inf
        self._silent_until = monotonic() + self._silence_s
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="replay writer", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many steps were dropped so far."""
        return self._dropped

    @property
    def waiting(self) -> int:
        """How many steps wait to be acknowledged."""
        return self._waiting

    @property
    def is_away(self) -> bool:
        """Whether the server does not take the waiting steps."""
        return self._away_since is not None

    @property
    def gives_up(self) -> bool:
        """Whether the server has not answered for so long that steps are dropped."""
        since = self._away_since
        return since is not None and monotonic() - since >= self._patience_s

    def stored_types(self, types: Types) -> Types:
        """Return the types of columns by name that are stored: ``types`` where they were open.

        Waits as ``put`` does; ``types`` if the server has not answered by then.
        """
        deadline = monotonic() + self._patience_s
        while not self._closes and self._observer.goes_on():
            try:
                stored = self._open(self._schema.settled(types))
                self._note_away(None)
                return {name: stored.columns[name].dtype for name in types}
            except (ReplayAway, NotReady) as error:
                self._observer.refused(str(error))
                if monotonic() >= deadline:
                    break
            self._closes_within(_LOOK_S)
        return types

    def warm_up(self) -> None:
        """Do nothing."""

    def interrupt(self, slot: int) -> None:
        """Note that the next steps of ``slot`` do not follow the previous ones."""
        with self._changed:
            self._skips.add(slot)

    def put(self, steps: StepBatch) -> None:
        """Queue ``steps``; raise the error that ended the thread."""
        with self._changed:
            has_room = self._wait_for_room()
            if self._error is not None:
                raise self._error
            kept = self._kept(steps, has_room)
            if kept is None:
                return
            if self._rollouts is not None:
                self._rollouts.add(kept)
            if not self._queue:
                self._oldest_at = monotonic()
            self._queue.append(kept)
            self._waiting += len(kept)
            self._changed.notify_all()

    def admits(self, slots: Sequence[int], version: int) -> bool:
        """Return whether actions may be chosen for ``slots`` with parameters of ``version``.

        Those that begin a rollout must be admitted by the server, which waits for the learner. Ask
        again with the newest parameters; steps of rollouts that are under way are sent meanwhile.
        True where the server does not answer, and when this is closed.
        """
        if self._rollouts is None:
            return True
        with self._changed:
            beginning = self._rollouts.beginning(slots)
            if not beginning or self._closes or self.gives_up or not self._observer.goes_on():
                return True
        why = self._refusal(beginning, version)
        with self._changed:
            self._hurries = bool(why)
            self._changed.notify_all()
            if not why:
                self._rollouts.admit(beginning)
                return True
        self._observer.refused(why)
        self._observer.not_admitted()
        self._closes_within(ADMISSION_PAUSE_S)
        return False

    def release(self, slots: Sequence[int]) -> None:
        """Let what ``slots`` have begun not be waited for: they go on no more."""
        if self._rollouts is None or not self.flush(CLOSE_DEADLINE_S):
            return
        with suppress(RelaaxError):  # it has forgotten them, or will when it answers again
            self._stub.release(self._name, slots)
            with self._changed:
                self._rollouts.release(slots)

    @property
    def _patience_s(self) -> float:
        """How long the server may be away."""
        first = self._first_timeout_s
        return self._timeout_s if first is None else first

    def _refusal(self, slots: Sequence[int], version: int) -> str:
        """Ask for the admission of rollouts; return why there is none, or ""."""
        has_delivered = self._waiting == 0
        wait_s = ADMISSION_S if has_delivered else LONGEST_WAIT_S
        try:
            try:
                self._stub.admit(self._name, slots, version, wait_s, has_delivered=has_delivered)
            except UnknownWriter:
                if not self._begin_anew():
                    return f"{self._stub.url} has started again"
                self._open(self._schema)
                self._stub.admit(self._name, slots, version, wait_s, has_delivered=has_delivered)
        except NotReady as error:
            return f"{self._stub.url} admits no rollout: {error}"
        except ReplayAway as error:
            self._note_away(self._away_since or monotonic())
            return str(error)
        self._note_away(None)
        return ""

    def flush(self, timeout_s: float) -> bool:
        """Wait until all steps are acknowledged; return False if they are not in time.

        Raise the error that ended the thread.
        """
        with self._changed:
            self._hurries = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting or self._error, timeout_s)
            self._hurries = False
            if self._error is not None:
                raise self._error
            return self._waiting == 0

    def finish(self) -> None:
        """Let the thread send waiting steps, and end; ``close`` waits for that."""
        with self._changed:
            self._closes = True
            self._changed.notify_all()

    def close(self, until: float | None = None) -> None:
        """Send waiting steps, up to a deadline, and end the thread; the server forgets the writer.

        The deadline is at ``until``, by time.monotonic(), or in a second.
        """
        self.finish()
        left = CLOSE_DEADLINE_S if until is None else until - monotonic()
        self._thread.join(max(left, 0.0))
        with self._changed:
            self._is_over = True
            self._dropped += self._waiting
            self._waiting = 0
        self._report_dropped()
        self._stub.close()

    def _wait_for_room(self) -> bool:
        """Wait for room; return False if there is no room in time, or this is closed."""
        while self._waiting >= self._most_waiting and self._error is None:
            if self._drops or self._closes or self.gives_up or not self._observer.goes_on():
                return False
            self._changed.wait(_LOOK_S)
        return True

    def _kept(self, steps: StepBatch, has_room: bool) -> StepBatch | None:
        """Return the steps that are sent, and note which environments miss some then."""
        slots = steps.slots.tolist() if self._skips or not has_room else []
        if has_room and self._skips.isdisjoint(slots):
            return steps
        if not has_room:
            self._skips.update(slots)
            self._dropped += len(steps)
            self._observer.dropped_actions(steps.actions)
            return None
        kept, flags = ~np.isin(steps.slots, list(self._skips)), steps.flags.copy()
        for slot in self._skips.intersection(slots):
            rows = np.flatnonzero(steps.slots == slot)
            first = self._first_kept(flags[rows])
            if first is not None:
                kept[rows[first:]] = True
                flags[rows[first]] |= 0 if flags[rows[first]] & START else GAP
                self._skips.discard(slot)
        dropped = steps.chosen(~kept)
        self._dropped += len(dropped)
        self._observer.dropped_actions(dropped.actions)
        return StepBatch(steps.slots, flags, steps.columns).chosen(kept) if kept.any() else None

    def _first_kept(self, flags: Flags) -> int | None:
        """Return with which step [N] of an environment that misses some it goes on, if any."""
        if not self._whole_episodes and self._waiting <= self._most_waiting // 2:
            return 0
        starts = np.flatnonzero(flags & START)
        return int(starts[0]) if len(starts) else None

    def _run(self) -> None:
        try:
            while (steps := self._take()) is not None:
                for begin in range(0, len(steps), MOST_STEPS_AT_ONCE):
                    end = min(begin + MOST_STEPS_AT_ONCE, len(steps))
                    if not self._send(steps.chosen(np.arange(begin, end))):
                        return  # the steps that follow must not be stored without these
        except Exception as error:  # raised again by the next ``put``
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            self._part()

    def _part(self) -> None:
        """Let the server end the episodes of this writer now; if not, it will after the lease."""
        if self._is_open and not self.is_away:
            with suppress(RelaaxError, ValueError):  # ValueError: the channel has been closed
                self._stub.close_writer(self._name, CLOSE_DEADLINE_S / 2)

    def _take(self) -> StepBatch | None:
        """Wait for enough steps and return them; None at the end."""
        while not self._wait_for_steps():
            self._silent_until = monotonic() + self._silence_s
            # Where that fails, the steps that come next find out why.
            with suppress(RelaaxError, ValueError):  # ValueError: the channel has been closed
                self._stub.hear(self._name)
        with self._changed:
            if not self._queue:
                return None
            taken, count = [], 0
            while self._queue and count < MOST_STEPS_AT_ONCE:
                taken.append(self._queue.popleft())
                count += len(taken[-1])
            self._oldest_at = monotonic()
            return StepBatch.concatenated(taken)

    def _wait_for_steps(self) -> bool:
        """Wait for enough steps, or the end; return False where it is time to be heard."""
        with self._changed:
            while self._waiting < self._steps_at_once and not self._closes:
                if self._hurries and self._queue:
                    return True
                due = self._oldest_at + LONGEST_WAIT_S if self._queue else self._silent_until
                left = due - monotonic()
                if left <= 0:
                    return bool(self._queue)
                self._changed.wait(None if left == math.inf else left)
            return True

    def _send(self, steps: StepBatch) -> bool:
        """Send steps until they are acknowledged; return False if the writer is closed before."""
        steps = steps.chosen(np.argsort(steps.slots, kind="stable"))
        for pause_s in _pauses():
            try:
                self._send_once(steps)
                break
            except _OtherTypes as error:
                self._observer.refused(str(error))
                if self._take_note(steps, len(steps), str(error)):
                    self._observer.dropped_actions(steps.actions)
                return True
            except UnknownWriter:  # it has started again, and knows nothing
                self._is_open = False
                self._next.clear()
                self._recount(steps)
            except NotReady as error:
                self._note_away(None)
                self._observer.refused(f"{self._stub.url} takes no steps: {error}")
                self._report_dropped()
                if self._closes_within(FIRST_PAUSE_S):
                    return False
            except ReplayAway as error:
                if self._away_since is None and not self._closes:
                    _log.warning("waiting: %s", error)
                self._note_away(self._away_since or monotonic())
                self._observer.refused(str(error))
                self._report_dropped()
                if self._closes_within(pause_s):
                    return False
        if self._take_note(steps):
            self._observer.delivered(steps.actions)
        return True

    def _begin_anew(self) -> bool:
        """Number steps from 0 on; return False while some wait, whose sender will do so."""
        with self._changed:
            if self._waiting:
                return False
            self._is_open = False
            self._next.clear()
            if self._rollouts is not None:
                self._rollouts.restart(())
            return True

    def _recount(self, first: StepBatch) -> None:
        if self._rollouts is not None:
            with self._changed:
                self._rollouts.restart([first, *self._queue])

    def _take_note(self, steps: StepBatch, dropped: int = 0, reason: str = "") -> bool:
        """Take note that the server has answered, and that ``steps`` wait no longer.

        Return False if ``close`` has counted them already.
        """
        with self._changed:
            if self._is_over:
                return False
            self._away_since = self._first_timeout_s = None
            self._dropped += dropped
            self._waiting -= len(steps)
            self._changed.notify_all()
        self._report_dropped(reason)
        return True

    def _report_dropped(self, reason: str = "") -> None:
        """Report the number of newly dropped steps, if there are any."""
        with self._changed:
            dropped, self._reported = self._dropped - self._reported, self._dropped
            unsaid, now = self._dropped - self._said, monotonic()
            is_due = now >= self._say_at or self._closes
            if unsaid and is_due:
                self._said, self._say_at = self._dropped, now + SAY_EVERY_S
        if unsaid and is_due:
            why = reason or f"{self._stub.url} did not take them"
            _log.warning("%d steps were dropped: %s", unsaid, why)
        if dropped:
            self._observer.dropped(dropped)

    def _note_away(self, since: float | None) -> None:
        """Take note since when the server does not answer; None if it does."""
        with self._changed:
            self._away_since = since
            if since is None:
                self._first_timeout_s = None
            self._changed.notify_all()

    def _closes_within(self, seconds: float) -> bool:
        """Wait so long, unless the writer is closed; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._closes, seconds)

    def _send_once(self, steps: StepBatch) -> None:
        if not self._is_open:
            types = {name: steps.columns[name].dtype for name in self._schema.columns}
            stored = self._open(self._schema.settled(types))
            if wrong := stored.differences(self._schema.settled(types)):
                raise _OtherTypes(f"{self._stub.url} stores others: {'; '.join(wrong)}")
            self._is_open = True
        slots, counts = (each.tolist() for each in np.unique(steps.slots, return_counts=True))
        runs = [
            replay_pb2.Run(environment=slot, first=self._next.get(slot, 0), count=count)
            for slot, count in zip(slots, counts, strict=True)
        ]
        columns = [steps.columns[name] for name in self._schema.columns]
        sys.audit("relaax.writer.send")
        following = self._stub.append(self._name, runs, steps.flags, columns)
        sys.audit("relaax.writer.stored")
        self._silent_until = monotonic() + self._silence_s
        self._next.update(zip(slots, following, strict=True))

    def _open(self, schema: Schema) -> Schema:
        """Open the writer for steps of ``schema``; return the stored one, whose types may differ.

        ConfigurationError for other columns, whatever their types are.
        """
        try:
            lease_s = self._stub.open(self._name, schema)
        except ConfigurationError as error:
            stored, _ = self._stub.describe()
            if self._schema.differences(stored):
                raise
            _log.warning("observations of other types are refused: %s", error)
            return stored
        self._silence_s = lease_s / BEATS if lease_s > 0 else math.inf
        return schema


def _pauses() -> Iterator[float]:
    """Yield the pauses after calls that failed."""
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
