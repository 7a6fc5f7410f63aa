"""Finds workers that hang."""

import time
from collections.abc import Callable, Mapping

from relaax.server.rlx_server.tally.row import Cell, ServerState

#: After a longer pause between looks the server itself was stopped, for example by Ctrl-Z, and the
#: workers with it.
_STOPPED_S = 10.0


class Watchdog:
    """Compares how long turns last with ``timeout_s``.

    While the parameter server is away workers wait for it, and hang no more than it does: that time
    does not count.
    """

    def __init__(
        self, state: ServerState, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = state
        self.timeout_s = timeout_s
        self._clock = clock
        self._looked_at = self._count_from = clock()
        self._found: set[tuple[int, float]] = set()

    def hung(self, turns: Mapping[int, float]) -> list[int]:
        """Return the pids whose turn lasts too long, once for each turn.

        ``turns``: the begin of each; a worker that has not begun to serve is missing, or has 0. A
        killed worker may stay in it for a moment.
        """
        now = self._clock()
        if now - self._looked_at > _STOPPED_S:
            self._count_from = now
        self._looked_at = now
        away_at = self._state[Cell.PARAMETER_SERVER_WAS_AWAY]
        earliest = max(away_at, self._count_from)
        known = self._found
        self._found = {
            (pid, began)
            for pid, began in turns.items()
            if began > 0 and now - max(began, earliest) > self.timeout_s
        }
        return [pid for pid, _ in sorted(self._found - known)]
