"""Counts each sender's steps once, however often they are sent."""

from collections.abc import Callable

from relaax.bridge.sender_totals import SenderTotals

#: More in one call are a mistake, which would end the training, or have no place in a message.
MOST_STEPS = 1_000_000_000


def require_possible(steps: int) -> None:
    """Raise ValueError for more steps than any call brings."""
    if steps > MOST_STEPS:
        raise ValueError(f"{steps} steps came in one call; at most {MOST_STEPS} are counted")


class CountedSteps:
    """Hands steps to ``add``, which returns the global step. For several threads.

    ``on_counted`` is called with the number of those that were not counted before, and ``senders``
    remember what was.
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

        Those of a sender of 0 are counted whenever they come. ValueError for too many.
        """
        require_possible(steps)
        if sender == 0 or steps == 0:
            return self._counted(steps)
        return self._senders.count(sender, steps, total, self._counted)

    def _counted(self, new: int) -> int:
        global_t = self._add(new)
        self._on_counted(new)
        return global_t
