"""What the first shard says to the others: the same to all, in order."""

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from relaax.algorithm_base import FloatVector

#: So many of the latest orders are kept for a shard that was cut off, which take 21 MB.
MOST_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Update:
    """Apply what a worker has staged."""

    worker: int
    sequence: int
    #: How many updates there are with this one.
    number: int
    #: The global step before it.
    global_t: int
    #: Environment steps behind it.
    steps: int


@dataclass(frozen=True, slots=True)
class Save:
    """Save what there is, as a part of a checkpoint."""

    set_id: str
    global_t: int
    #: The steps of checkpoints that the first shard has.
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The training is over."""


@dataclass(frozen=True)
class Heard:
    """The first shard is there: comes first, since there may be nothing to do for a while."""


Order: TypeAlias = Update | Save | End


@dataclass(frozen=True)
class Beginning:
    """What all shards begin with, and the orders that follow it."""

    #: Random for each beginning: what comes from another one is of other values.
    incarnation: int
    number: int
    global_t: int
    #: The checkpoint to restore; empty if the shards take their slices of ``vector``.
    set_id: str
    #: float32 [size], where no checkpoint is restored.
    vector: FloatVector | None


#: What the first shard says.
News: TypeAlias = Heard | Beginning | Order


@dataclass
class OrderLog:
    """The orders since a beginning; the oldest are forgotten. Not thread-safe."""

    beginning: Beginning
    orders: deque[Order] = field(default_factory=deque)
    #: How many orders are forgotten.
    forgotten: int = 0

    @property
    def end(self) -> int:
        """How many orders there have been."""
        return self.forgotten + len(self.orders)

    def add(self, order: Order) -> None:
        """Put an order behind the others."""
        self.orders.append(order)
        self.forget_before(self.end - MOST_KEPT)

    def forget_before(self, position: int) -> None:
        """Forget the orders before ``position``: who needs one of them has to begin anew."""
        while self.orders and self.forgotten < position:
            self.orders.popleft()
            self.forgotten += 1

    def at(self, position: int) -> Order:
        """Return the order at ``position``; LookupError if it is forgotten, or not there yet."""
        if not self.forgotten <= position < self.end:
            raise LookupError(f"order {position} is not kept")
        return self.orders[position - self.forgotten]

    def has(self, position: int) -> bool:
        """Return whether all orders from ``position`` on are kept."""
        return self.forgotten <= position <= self.end
