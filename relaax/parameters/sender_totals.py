"""Steps that were counted of each sender, now and at the global step of a checkpoint."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

#: More in one call are a mistake, which would end the training, or have no place in a message.
MOST_STEPS = 1_000_000_000

#: So many senders are remembered; the one that was silent the longest is forgotten first.
MOST_SENDERS = 100_000

#: The latest so many of them are in a checkpoint: its manifest takes 45 bytes for each.
MOST_SAVED = 4_096

#: A call adds its steps in far less time, unless it waits for a lock that an algorithm holds while
#: it saves. Then its steps are behind the checkpoint's, and need not be waited for.
CALL_S = 5.0


def require_possible(steps: int) -> None:
    """Raise ValueError for more steps than any call brings."""
    if steps > MOST_STEPS:
        raise ValueError(f"{steps} steps came in one call; at most {MOST_STEPS} are counted")


def require_reachable(at: int, global_t: int) -> None:
    """Raise ValueError for a global step further ahead of ``global_t`` than any call brings."""
    if at > global_t + MOST_STEPS:
        raise ValueError(f"global step {at} is more than {MOST_STEPS} steps ahead of {global_t}")


@dataclass(eq=False)
class _Sender:
    #: Its steps that were counted; None where their number is not known.
    total: int | None = None
    #: Held during a call of it.
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class _Moment:
    #: The global step after a call, and the number of its sender's steps that were counted then.
    global_t: int
    total: int | None


class SenderTotals:
    """Counts each sender's new steps. For several threads.

    A call brings ``steps``, and the ``total`` of all steps of its sender, with these. A call whose
    answer was lost comes again, with the same total or, where more steps go with it, with a larger
    one.

    The totals in a checkpoint must agree with its global step, though calls come all the time.
    Adding steps returns the global step with them, so that a call is in a checkpoint of global step
    70 if it has returned 70 or less. While a checkpoint is saved, ``recording`` keeps the returned
    steps of each call.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._senders: OrderedDict[int, _Sender] = OrderedDict()
        #: A mark for each call that is adding its steps.
        self._calls: set[object] = set()
        self._recordings = 0
        #: By sender: its counted steps before the recording, and after each call since.
        self._recorded: dict[int, list[_Moment]] = {}

    def count(self, sender: int, steps: int, total: int, add: Callable[[int], int]) -> int:
        """Let ``add`` count the new ones of ``steps``; return the global step, which it returns."""
        with self._call_of(sender) as known:
            new = steps
            # A sender sends all steps that were not answered. Others, up to its total, were
            # answered, and lost when the training went back to a checkpoint: they are not new.
            if known.total is not None:
                new = min(steps, max(0, total - known.total))
            global_t = add(new)
            self._note(sender, known, total, global_t)
            return global_t

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep the results of calls, from before a checkpoint is made until it is written."""
        with self._changed:
            self._recordings += 1
        try:
            yield
        finally:
            with self._changed:
                self._recordings -= 1
                if not self._recordings:
                    self._recorded = {}

    def as_of(self, global_t: int) -> dict[int, int]:
        """Return the counted steps of the latest senders up to a global step, by sender.

        The global step must have been reached during this recording. Without a recording, the
        result is empty.
        """
        with self._changed:
            if not self._recordings:
                return {}
            begun = set(self._calls)
            self._changed.wait_for(lambda: not begun & self._calls, CALL_S)
            totals = {sender: self._total_at(sender, global_t) for sender in self._senders}
        known = [(sender, total) for sender, total in totals.items() if total is not None]
        return dict(known[-MOST_SAVED:])

    def restore(self, totals: Mapping[int, int]) -> None:
        """Go on from saved totals; those of other senders are not known."""
        with self._changed:
            for sender in [*self._senders, *totals]:
                self._known(sender).total = totals.get(sender)

    @contextmanager
    def _call_of(self, sender: int) -> Iterator[_Sender]:
        with self._changed:
            known, mark = self._known(sender), object()
        with known.lock:
            with self._changed:
                self._calls.add(mark)
            try:
                yield known
            finally:
                with self._changed:
                    self._calls.discard(mark)
                    self._changed.notify_all()

    def _note(self, sender: int, known: _Sender, total: int, global_t: int) -> None:
        with self._changed:
            before = known.total
            known.total = total if before is None else max(total, before)
            if self._recordings:
                moments = self._recorded.setdefault(sender, [_Moment(-1, before)])
                moments.append(_Moment(global_t, known.total))

    def _total_at(self, sender: int, global_t: int) -> int | None:
        moments = self._recorded.get(sender)
        if moments is None:
            return self._senders[sender].total
        return next(each.total for each in reversed(moments) if each.global_t <= global_t)

    def _known(self, sender: int) -> _Sender:
        known = self._senders.setdefault(sender, _Sender())
        self._senders.move_to_end(sender)
        if len(self._senders) > MOST_SENDERS:
            self._senders.popitem(last=False)
        return known


class CountedSteps:
    """Hands steps to ``add``, which returns the global step. For several threads.

    ``on_counted`` is called with the number of steps that were not counted before, and ``senders``
    remember the others.
    """

    def __init__(
        self,
        add: Callable[[int], int],
        on_counted: Callable[[int], object] = lambda steps: None,
        senders: SenderTotals | None = None,
    ) -> None:
        self._add = add
        self._on_counted = on_counted
        self._senders = senders or SenderTotals()

    def count(self, steps: int, sender: int, total: int) -> int:
        """Count the steps of a call, and return the global step.

        Steps of sender 0 are counted at each call. ValueError for too many.
        """
        require_possible(steps)
        if sender == 0 or steps == 0:
            return self._counted(steps)
        return self._senders.count(sender, steps, total, self._counted)

    def _counted(self, new: int) -> int:
        global_t = self._add(new)
        self._on_counted(new)
        return global_t
