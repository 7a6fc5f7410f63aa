"""When items may be added to a table, and when they may be drawn."""

import math
from dataclasses import dataclass

from relaax.errors import ConfigurationError


@dataclass(frozen=True)
class Limiter:
    """Lets draws begin at ``min_items``, and holds them near ``samples_per_insert`` of each item.

    Draws begin when so many items have ever been inserted, however many of them are still there.
    With S drawn and I inserted items, D = I * samples_per_insert - S stays within ``error_buffer``
    of ``min_items * samples_per_insert``: nothing is drawn below that, nothing is inserted above
    (Cassirer et al. 2021, section 3.4). Without ``samples_per_insert`` only ``min_items`` and
    ``max_items`` count.
    """

    min_items: int = 1
    max_items: int | None = None
    samples_per_insert: float | None = None
    error_buffer: float = 0.0

    def __post_init__(self) -> None:
        if self.min_items < 1:
            raise ConfigurationError(f"min_items must be at least 1, is {self.min_items}")
        if self.max_items is not None and self.max_items < self.min_items:
            raise ConfigurationError(
                f"max_items must be at least min_items, which is {self.min_items}, is "
                f"{self.max_items}"
            )
        if self.samples_per_insert is None:
            return
        if self.samples_per_insert <= 0:
            raise ConfigurationError(
                f"samples_per_insert must be positive, is {self.samples_per_insert}"
            )
        if self.error_buffer < max(1.0, self.samples_per_insert):
            raise ConfigurationError(
                f"error_buffer must be at least 1 and samples_per_insert, which is "
                f"{self.samples_per_insert}, or nothing can go on; is {self.error_buffer}"
            )

    def keeps_out(self, items: int, inserted: int, charged: int, count: int) -> str:
        """Return why ``count`` more items may not come to ``items`` that are there; "" if they may.

        ``inserted`` items ever came, and ``charged`` draws have been counted so far.
        """
        if self.max_items is not None and items + count > self.max_items:
            if items < self.min_items:  # rather too many than too few for any draw
                return ""
            return (
                f"the learner is behind the steps: {items:,} items wait for it, of at most "
                f"{self.max_items:,}"
            )
        if self.samples_per_insert is None or inserted < self.min_items:
            return ""
        # The present items decide, and not ``count``: more than the buffer could never be inserted.
        due = (inserted - self.min_items) * self.samples_per_insert
        if due - charged <= self.error_buffer:
            return ""
        return (
            f"updates are behind the steps: {charged:,} draws were made, and {due:,.0f} are due "
            f"for the {inserted:,} items that have come ({self.samples_per_insert:g} for each "
            f"after the first {self.min_items:,})"
        )

    def holds_back(self, inserted: int, charged: int, count: int) -> str:
        """Return why ``count`` items may not be drawn now; "" if they may."""
        if inserted < self.min_items:
            return (
                f"{inserted:,} of the {self.min_items:,} items with which learning begins have come"
            )
        if count <= self.allowance(inserted, charged):
            return ""
        return (
            f"steps are behind the updates: {inserted:,} items have come, {charged:,} draws were "
            f"made of them, and {count:,} more are not due yet ({self.samples_per_insert:g} for "
            f"each item after the first {self.min_items:,})"
        )

    def allowance(self, inserted: int, charged: int) -> float:
        """Return how many items may be drawn now: infinite without a ratio; see ``keeps_out``."""
        if inserted < self.min_items:
            return 0.0
        if self.samples_per_insert is None:
            return math.inf
        ahead = (inserted - self.min_items) * self.samples_per_insert - charged
        return max(0.0, math.floor(ahead + self.error_buffer))

    def resumed(self, inserted: int, charged: int) -> int:
        """Return how many draws count as made for a table that had another limiter before.

        They bring D within the buffer: with another ratio, or without one, draws may have run ahead
        by so many that either side would stand still for as long as the training before.
        """
        if self.samples_per_insert is None:
            return charged
        due = max(0, inserted - self.min_items) * self.samples_per_insert
        least, most = max(0.0, due - self.error_buffer), due + self.error_buffer
        return round(min(max(charged, least), most))

    def share(self, of: int) -> "Limiter":
        """Return the limiter of one of ``of`` servers with equal shares of the items."""
        buffer = self.error_buffer / of
        if self.samples_per_insert is not None:
            buffer = max(buffer, 1.0, self.samples_per_insert)
        return Limiter(
            min_items=-(-self.min_items // of),
            max_items=None if self.max_items is None else -(-self.max_items // of),
            samples_per_insert=self.samples_per_insert,
            error_buffer=buffer,
        )
