"""How fast counts grow."""

from collections import deque
from collections.abc import Mapping

#: Counts are kept at least so many seconds apart.
APART_S = 0.5


class Rates:
    """Means over about ``window_s`` seconds, of counts as they were when they were asked for."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._past: deque[tuple[float, Mapping[str, float]]] = deque()

    def of(self, counts: Mapping[str, float], now: float) -> dict[str, float]:
        """Return by how much each of ``counts`` grows per second; nothing at the first time."""
        while len(self._past) > 1 and self._past[1][0] <= now - self._window_s:
            self._past.popleft()
        rates = {}
        if self._past and self._past[0][0] < now:
            began, before = self._past[0]
            rates = {
                f"{name} per second": (count - before[name]) / (now - began)
                for name, count in counts.items()
            }
        if not self._past or now - self._past[-1][0] >= APART_S:
            self._past.append((now, dict(counts)))
        return rates
