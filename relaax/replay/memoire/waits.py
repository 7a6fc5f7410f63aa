"""Waiting for a server, up to a deadline or until the client is closed."""

import threading
from collections.abc import Iterator
from time import monotonic

from relaax.replay.memoire.batches import MemoryClosed
from relaax.replay.memoire.service import LONGEST_WAIT_S

#: Pause between two questions, where a server answers at once or not at all.
PAUSE_S = 0.2


def waits(timeout_s: float | None, closed: threading.Event) -> Iterator[float]:
    """Yield how long each further wait may be, at least once, until ``timeout_s`` are over.

    None waits for ever. MemoryClosed once ``closed`` is set.
    """
    deadline = None if timeout_s is None else monotonic() + timeout_s
    left_s = LONGEST_WAIT_S if deadline is None else max(deadline - monotonic(), 0.0)
    while True:
        begun = monotonic()
        yield min(left_s, LONGEST_WAIT_S)
        if deadline is not None:
            left_s = deadline - monotonic()
            if left_s <= 0:
                return
        if closed.wait(max(0.0, min(left_s, PAUSE_S) - (monotonic() - begun))):
            raise MemoryClosed("the client was closed")
