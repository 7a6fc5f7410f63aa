"""Counts each sender's steps once, however often they are sent."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

#: So many senders are remembered; one that was silent the longest is forgotten.
_MOST_SENDERS = 100_000

#: More in one call are a mistake, which would end the training, or have no place in a message.
MOST_STEPS = 1_000_000_000


def require_possible(steps: int) -> None:
    """Raise ValueError for more steps than any call brings."""
    if steps > MOST_STEPS:
        raise ValueError(f"{steps} steps came in one call; at most {MOST_STEPS} are counted")


@dataclass
class _Sender:
    #: Steps of it that were counted; None before the first call.
    total: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class CountedSteps:
    """Hands steps to ``add``, which returns the global step. For several threads.

    ``on_counted`` is called with the number of those that were not counted before.

    A sender says with each call how many steps it has ever sent. A call whose answer was lost comes
    again, with the same sum or, if more steps are sent with it, with a larger one: what has been
    counted of it is not counted again.
    """

    def __init__(
        self, add: Callable[[int], int], on_counted: Callable[[int], object] = lambda steps: None
    ) -> None:
        self._add = add
        self._on_counted = on_counted
        self._lock = threading.Lock()
        self._senders: OrderedDict[int, _Sender] = OrderedDict()

    def count(self, steps: int, sender: int, total: int) -> int:
        """Count the steps of a call, and return the global step.

        Those of a sender of 0 are counted whenever they come. ValueError for too many.
        """
        require_possible(steps)
        if sender == 0 or steps == 0:
            return self._counted(steps)
        known = self._known(sender)
        with known.lock:
            new = steps if known.total is None else max(0, total - known.total)
            require_possible(new)
            global_t = self._counted(new)
            known.total = total if known.total is None else max(total, known.total)
            return global_t

    def _counted(self, new: int) -> int:
        global_t = self._add(new)
        self._on_counted(new)
        return global_t

    def _known(self, sender: int) -> _Sender:
        with self._lock:
            known = self._senders.setdefault(sender, _Sender())
            self._senders.move_to_end(sender)
            if len(self._senders) > _MOST_SENDERS:
                self._senders.popitem(last=False)
            return known
