"""Which entries a draw reads: rollouts, stacks of frames and pairs, as places in the columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.compat.memoire.ring import Ring

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Episodes:
    """Of the entry at each place of all rings: its number, and that of its episode's first one."""

    numbers: IntArray
    first: IntArray

    @classmethod
    def of(cls, capacity: int) -> "Episodes":
        """Return room for ``capacity`` entries."""
        return cls(np.full(capacity, -1, np.int64), np.full(capacity, -1, np.int64))

    def before(self, places: IntArray, oldest: IntArray | int) -> IntArray:
        """Return how many stored entries of the same episode come before each of ``places``.

        ``oldest`` are the numbers of the oldest entries in their rings.
        """
        found: IntArray = self.numbers[places] - np.maximum(self.first[places], oldest)
        return found

    def ahead(self, places: IntArray, size: int, most: int) -> IntArray:
        """Return how many entries of the same episode follow each of ``places``, up to ``most``.

        ``size`` is that of a ring.
        """
        found = np.zeros(places.shape, np.int64)
        goes_on = np.ones(places.shape, np.bool_)
        for step in range(1, most + 1):
            behind = shifted(places, step, size)
            goes_on &= self.first[behind] == self.first[places]
            goes_on &= self.numbers[behind] == self.numbers[places] + step
            found += goes_on
        return found


def shifted(places: IntArray, by: Any, size: int) -> IntArray:
    """Return the places that are ``by`` entries later in their rings of ``size`` places."""
    found: IntArray = places // size * size + (places % size + by) % size
    return found


def ending_at(places: IntArray, length: int, size: int, before: IntArray | None) -> IntArray:
    """Return int64 [..., length]: the entries that end at ``places`` [...], the oldest first.

    ``before`` [...] is how far back they may go, beyond which the first of them is repeated; None
    if they may go back as far as they like.
    """
    back = np.arange(length - 1, -1, -1)
    if before is not None:
        back = np.minimum(back, before[..., np.newaxis])
    return shifted(places[..., np.newaxis], -back, size)


def may_be_drawn(
    ring: Ring,
    numbers: IntArray,
    *,
    rollout_len: int,
    frame_stack: int,
    multi_step: int,
    pads: bool,
) -> BoolArray:
    """Return which entries ``numbers`` [N] of a ring have the entries around them that they need.

    A rollout without padding needs those before it, and a stack of frames those that its episode
    had. A pair needs those behind it, unless the episode has ended.
    """
    history = 0 if pads else rollout_len - 1
    if not pads and ring.has_lost_a_head:
        history += frame_stack - 1
    drawn: BoolArray = numbers >= ring.oldest + history
    if multi_step and ring.goes_on:
        drawn &= (numbers < ring.episodes[-1].first) | (numbers + multi_step < ring.written)
    return drawn
