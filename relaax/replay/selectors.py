"""The choice of a table's items for a draw."""

import math
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ABSENT = -1

#: Children of a node. More make the tree flatter, and each of its levels slower.
FANOUT = 16

#: After so many changes sums are added up, even if they are not used.
MOST_CHANGED = 4096


@dataclass(frozen=True)
class Drawn:
    """Items that were drawn: their rows int64 [N], and how probable each was, float64 [N]."""

    rows: IntArray
    probabilities: FloatArray


class Selector(ABC):
    """Knows a table's items by their rows, and draws of them, with replacement unless it says so.

    Items are equally probable, and of equal weight, unless it says so.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return how many items there are."""

    @property
    def least_probability(self) -> float:
        """How probable the item is that is drawn most seldom; the weight must be above 0."""
        return 1.0 / len(self)

    @property
    def weight(self) -> float:
        """The weight of this table among several: the sum of the items' own weights."""
        return float(len(self))

    @property
    def most(self) -> float:
        """How many items can be drawn at once; infinite where they are drawn with replacement."""
        return math.inf

    @abstractmethod
    def add(self, rows: IntArray) -> None:
        """Take up ``rows`` int64 [N], which are not known yet, in this order."""

    @abstractmethod
    def remove(self, rows: IntArray) -> None:
        """Forget ``rows`` int64 [N]; unknown ones are ignored."""

    @abstractmethod
    def draw(self, count: int) -> Drawn:
        """Draw ``count`` items; there must be as many, where they are drawn once.

        The weight must be above 0.
        """

    @abstractmethod
    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """Return the state that another selector of this kind needs to go on, by name."""

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from the state of ``contents``; there must be no item yet."""
        self.add(contents["rows"])


class Uniform(Selector):
    """Draws with replacement, each item as probable as every other.

    Rows lie in places from 0 on without gaps. A row that is removed gives its place to the last
    one, so that any row is found, and removed, in the same time however many there are.
    """

    def __init__(self, capacity: int, generator: np.random.Generator) -> None:
        self._rows = np.empty(capacity, np.int64)
        self._places = np.full(capacity, ABSENT, np.int64)
        self._count = 0
        self._generator = generator

    def __len__(self) -> int:
        """See Selector."""
        return self._count

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        places = np.arange(self._count, self._count + len(rows))
        self._rows[places] = rows
        self._places[rows] = places
        self._count += len(rows)

    def remove(self, rows: IntArray) -> None:
        """See Selector; each is named once."""
        rows = rows[self._places[rows] != ABSENT]
        places = self._places[rows]
        self._places[rows] = ABSENT
        kept = self._count - len(rows)
        tail = self._rows[kept : self._count]
        moved = tail[self._places[tail] != ABSENT]
        holes = places[places < kept]
        self._rows[holes] = moved
        self._places[moved] = holes
        self._count = kept

    def draw(self, count: int) -> Drawn:
        """See Selector."""
        places = self._generator.integers(self._count, size=count)
        return Drawn(self._rows[places], np.full(count, 1.0 / self._count))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {"rows": self._rows[: self._count].copy()}


class Balanced(Selector):
    """Draws with replacement: rows that are marked as often as others, however few there are.

    Each draw is of either kind with the same probability, and of that kind each item is as probable
    as every other. Where one kind has no item, all draws are of the other.
    """

    def __init__(
        self,
        capacity: int,
        is_marked: Callable[[IntArray], npt.NDArray[np.bool_]],
        generator: np.random.Generator,
    ) -> None:
        self._is_marked = is_marked
        self._kinds = (Uniform(capacity, generator), Uniform(capacity, generator))
        self._generator = generator

    def __len__(self) -> int:
        """See Selector."""
        return sum(len(kind) for kind in self._kinds)

    @property
    def least_probability(self) -> float:
        """See Selector: of the kind with more items."""
        present = [len(kind) for kind in self._kinds if len(kind)]
        return 1.0 / (len(present) * max(present))

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        is_marked = self._is_marked(rows)
        for kind, some in zip(self._kinds, (rows[~is_marked], rows[is_marked]), strict=True):
            kind.add(some)

    def remove(self, rows: IntArray) -> None:
        """See Selector; each is named once."""
        for kind in self._kinds:
            kind.remove(rows)

    def draw(self, count: int) -> Drawn:
        """See Selector."""
        present = [kind for kind in self._kinds if len(kind)]
        chosen = self._generator.integers(len(present), size=count)
        drawn = Drawn(np.empty(count, np.int64), np.empty(count))
        for number, kind in enumerate(present):
            places = np.flatnonzero(chosen == number)
            of_kind = kind.draw(len(places))
            drawn.rows[places] = of_kind.rows
            drawn.probabilities[places] = of_kind.probabilities / len(present)
        return drawn

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {"rows": np.concatenate([kind.contents()["rows"] for kind in self._kinds])}


class PriorityTree:
    """Priorities of ``capacity`` places, each 0 at first: a place of priority 0 is never found.

    Every node has the sum of its children. If one of them has changed, it is added up again before
    it is used, so that rounding errors do not grow. Many places are set, or found, at once: a level
    of the tree is a few operations on whole arrays (Schaul et al. 2016, appendix B.2.1, with one
    child in two).
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, is {capacity}")
        sizes = [_rounded_up(capacity)]
        while sizes[-1] > FANOUT:
            sizes.append(_rounded_up(sizes[-1] // FANOUT))
        #: From the leaves to the node below the root: float64 [nodes].
        self._sums = [np.zeros(size) for size in sizes]
        self._least = [np.full(size, np.inf) for size in sizes]
        #: Places whose nodes are not added up yet, and their number.
        self._changed: list[IntArray] = []
        self._changed_count = 0

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        self._add_up()
        return float(self._sums[-1].sum())

    @property
    def least(self) -> float:
        """The least priority above 0; infinite if all are 0."""
        self._add_up()
        return float(self._least[-1].min())

    def priorities(self, places: IntArray) -> FloatArray:
        """Return the priorities float64 [N] of ``places`` int64 [N]."""
        found: FloatArray = self._sums[0][places]
        return found

    def set(self, places: IntArray, priorities: npt.ArrayLike) -> None:
        """Give ``places`` int64 [N] finite priorities [N] of at least 0; no place stands twice."""
        if len(places) == 0:
            return
        self._sums[0][places] = priorities
        self._changed.append(places)
        self._changed_count += len(places)
        if self._changed_count > MOST_CHANGED:
            self._add_up()

    def find(self, sums: FloatArray) -> IntArray:
        """Return the places int64 [N] in which ``sums`` [N] lie, from 0 to below the total.

        That is the first place where the sum of its priority and all before it is larger.
        """
        self._add_up()
        nodes = np.zeros(len(sums), np.int64)
        left = np.array(sums, np.float64)
        # Sums of a node's children before each of them, and of all.
        until = np.zeros((len(sums), FANOUT + 1))
        first = np.arange(len(sums)) * (FANOUT + 1)
        for level in reversed(self._sums):
            children = np.take(_children(level), nodes, axis=0, mode="clip")
            children.cumsum(axis=1, out=until[:, 1:])
            # Rounding may carry a sum beyond the last child that has any: it belongs there.
            np.minimum(left, np.nextafter(until[:, -1], 0.0), out=left)
            child = (until[:, 1:] > left[:, np.newaxis]).argmax(axis=1)
            left -= until.reshape(-1)[first + child]
            nodes = nodes * FANOUT + child
        return nodes

    def _add_up(self) -> None:
        """Let every node have the sum and the least of its children again."""
        if not self._changed:
            return
        nodes = np.unique(np.concatenate(self._changed))
        self._changed.clear()
        self._changed_count = 0
        priorities = self._sums[0][nodes]
        self._least[0][nodes] = np.where(priorities > 0, priorities, np.inf)
        for level in range(1, len(self._sums)):
            nodes = _without_repetitions(nodes // FANOUT)
            self._sums[level][nodes] = _children(self._sums[level - 1])[nodes].sum(axis=1)
            self._least[level][nodes] = _children(self._least[level - 1])[nodes].min(axis=1)


class Prioritized(Selector):
    """Draws with replacement, with P(i) = p_i**alpha / sum of p**alpha (Schaul et al. 2016, (1)).

    A new item has the largest priority that there has ever been, 1 at first, so that it is drawn
    soon. An item of priority 0 is never drawn. A draw multiplies an item's weight p**alpha by
    ``decay``.
    """

    def __init__(self, capacity: int, alpha: float, generator: np.random.Generator) -> None:
        #: The power of a priority that an item is drawn in proportion to.
        self.alpha = alpha
        #: From 0, where each item is drawn once, to 1, where weights stay.
        self.decay = 1.0
        self._tree = PriorityTree(capacity)
        self._is_item = np.zeros(capacity, np.bool_)
        self._count = 0
        self._largest = 1.0
        self._generator = generator

    def __len__(self) -> int:
        """See Selector."""
        return self._count

    @property
    def weight(self) -> float:
        """See Selector."""
        return self._tree.total

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        self._is_item[rows] = True
        self._count += len(rows)
        self._tree.set(rows, np.full(len(rows), self._largest**self.alpha))

    def remove(self, rows: IntArray) -> None:
        """See Selector."""
        known = rows[self._is_item[rows]]
        self._is_item[known] = False
        self._count -= len(known)
        self._tree.set(known, np.zeros(len(known)))

    @property
    def most(self) -> float:
        """See Selector."""
        return super().most if self.decay else len(self)

    def weights(self, rows: IntArray) -> FloatArray:
        """Return the weights [N] of ``rows`` [N], 0 of rows that are no items."""
        return self._tree.priorities(rows)

    def set_weights(self, rows: IntArray, weights: FloatArray) -> None:
        """Let ``rows`` [N] be items of these weights [N], but for rows of the weight 0."""
        is_item = weights > 0
        self._count += int(np.count_nonzero(is_item)) - int(np.count_nonzero(self._is_item[rows]))
        self._is_item[rows] = is_item
        self._tree.set(rows, weights)

    def draw(self, count: int) -> Drawn:
        """See Selector: one item from each of ``count`` equal parts of the sum (appendix B.2.1).

        With a decay, one after the other; there are fewer where nothing is left.
        """
        if self.decay != 1:
            return self._draw_decaying(count)
        total = self._tree.total
        parts = (np.arange(count) + self._generator.random(count)) * (total / count)
        rows = self._tree.find(parts)
        return Drawn(rows, self._tree.priorities(rows) / total)

    @property
    def least_probability(self) -> float:
        """The largest weight: of the item that is drawn most seldom."""
        return self._tree.least / self._tree.total

    def _draw_decaying(self, count: int) -> Drawn:
        """Draw one after the other, so that each draw is as probable as one that is made alone.

        Many are proposed at once, by the weights before: of a row that was drawn k times since, one
        in ``decay ** -k`` proposals counts.
        """
        total, rows, weights = self._tree.total, list[int](), list[float]()
        while len(rows) < count and self._tree.total > 0:
            random, chances = self._generator.random((2, count - len(rows)))
            proposed = self._tree.find(random * self._tree.total)
            before, times = self.weights(proposed), Counter[int]()
            for row, weight, chance in zip(
                proposed.tolist(), before.tolist(), chances.tolist(), strict=True
            ):
                left = self.decay ** times[row]
                if chance < left:
                    times[row] += 1
                    rows.append(row)
                    weights.append(weight * left)
            drawn, counts = np.array(list(times)), np.array(list(times.values()))
            self.set_weights(drawn, self.weights(drawn) * self.decay**counts)
        return Drawn(np.array(rows, np.int64), np.array(weights) / total)

    def update(self, rows: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] of at least 0; return how many of them were unknown."""
        known = self._is_item[rows]
        rows, priorities = rows[known], priorities[known]
        if len(rows):
            self._largest = max(self._largest, float(priorities.max()))
            self._tree.set(rows, priorities**self.alpha)
        return int(np.count_nonzero(~known))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {
            "rows": (rows := np.flatnonzero(self._is_item)),
            "priorities": self._tree.priorities(rows),
            "largest": np.array([self._largest]),
        }

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Selector."""
        super().restore(contents)
        self._tree.set(contents["rows"], contents["priorities"])
        self._largest = float(contents["largest"][0])


class Queue(Selector):
    """Hands out each item once: the oldest first, or the newest."""

    def __init__(self, *, is_newest_first: bool = False) -> None:
        self._rows: OrderedDict[int, None] = OrderedDict()
        self._is_newest_first = is_newest_first

    def __len__(self) -> int:
        """See Selector."""
        return len(self._rows)

    @property
    def least_probability(self) -> float:
        """See Selector: each is drawn for certain."""
        return 1.0

    @property
    def most(self) -> float:
        """See Selector."""
        return float(len(self))

    def add(self, rows: IntArray) -> None:
        """See Selector."""
        self._rows.update(dict.fromkeys(rows.tolist()))

    def remove(self, rows: IntArray) -> None:
        """See Selector."""
        for row in rows.tolist():
            self._rows.pop(row, None)

    def draw(self, count: int) -> Drawn:
        """See Selector; there must be ``count`` items."""
        rows = [self._rows.popitem(last=self._is_newest_first)[0] for _ in range(count)]
        return Drawn(np.array(rows, np.int64), np.ones(count))

    def contents(self) -> dict[str, npt.NDArray[Any]]:
        """See Selector."""
        return {"rows": np.array(list(self._rows), np.int64)}


def _rounded_up(size: int) -> int:
    return -(-size // FANOUT) * FANOUT


def _without_repetitions(nodes: IntArray) -> IntArray:
    """Return sorted ``nodes``, each once."""
    once: IntArray = nodes[np.concatenate([[True], nodes[1:] != nodes[:-1]])]
    return once


def _children(level: FloatArray) -> FloatArray:
    return level.reshape(-1, FANOUT)
