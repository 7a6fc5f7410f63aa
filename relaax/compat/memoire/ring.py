"""The entries of a slot: a ring of ``size`` entries, and the episodes in it."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass
class Episode:
    """Consecutive entries of a ring; an entry's number is how many came before it."""

    first: int
    length: int = 0

    @property
    def end(self) -> int:
        """The number of the entry behind it."""
        return self.first + self.length


@dataclass
class Ring:
    """``size`` places from ``begin`` on; entry n is at place n % size of them."""

    begin: int
    size: int
    episodes: deque[Episode] = field(default_factory=deque)
    #: How many entries have come; the number of the oldest that is still there.
    written: int = 0
    oldest: int = 0
    #: Whether the newest episode goes on.
    goes_on: bool = False

    @property
    def has_lost_a_head(self) -> bool:
        """Whether the first entries of the oldest episode are gone."""
        return bool(self.episodes) and self.episodes[0].first < self.oldest

    def places(self, numbers: IntArray) -> IntArray:
        """Return the places int64 [N] of the entries ``numbers`` int64 [N]."""
        return self.begin + numbers % self.size

    def write(self, count: int, keeps_whole: bool, max_episodes: int = 0) -> Episode:
        """Make room for ``count`` further entries of the newest episode, or of a new one.

        Old entries go: whole episodes if it ``keeps_whole``, else one by one; and whole ones beyond
        ``max_episodes``, unless that is 0. An episode that is longer than the ring loses its head.
        Return the episode.
        """
        if not self.goes_on:
            self.episodes.append(Episode(self.written))
            self.goes_on = True
        episode = self.episodes[-1]
        episode.length += count
        self.written += count
        needed = max(self.written - self.size, self.oldest)
        while self.episodes[0] is not episode and (
            self._is_to_go(needed, keeps_whole) or 0 < max_episodes < len(self.episodes)
        ):
            self.oldest = self.episodes.popleft().end
        self.oldest = max(self.oldest, needed)
        return episode

    def end_episode(self) -> None:
        """Let the next entry begin another episode."""
        self.goes_on = False

    def clear(self) -> IntArray:
        """Forget all entries; return their numbers."""
        gone = np.arange(self.oldest, self.written)
        self.episodes.clear()
        self.oldest, self.goes_on = self.written, False
        return gone

    def _is_to_go(self, needed: int, keeps_whole: bool) -> bool:
        first = self.episodes[0]
        return first.end <= needed or (keeps_whole and first.first < needed)
