"""The rows of stored steps that make up an item: one row, transitions, windows, rollouts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from relaax.observations import SEPARATOR
from relaax.replay.storage import (
    ABANDONED,
    ENDS,
    FINAL,
    NONE,
    START,
    TERMINATED,
    Empty,
    Storage,
    gather,
)

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class View(ABC):
    """The definition of an item, and its reader."""

    #: Which axis of the arrays that are read counts the items.
    item_axis: ClassVar[int] = 0

    @property
    def stride(self) -> int:
        """Steps from one item to the next at least, but for the starts of episodes."""
        return 1

    @property
    def crosses_episodes(self) -> bool:
        """Whether rows of the next episode may follow an item's row."""
        return False

    @property
    def ahead(self) -> int:
        """Rows that must follow an item's row, unless its episode ends before."""
        return 0

    @property
    def behind(self) -> int:
        """Rows before an item's row that it needs, unless its episode starts behind them.

        If they are missing and no start is known, the row is no item, unless items cross episodes.
        """
        return 0

    @abstractmethod
    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """Return which of ``rows`` [N] are an item's, once enough rows follow: bool [N]."""

    @abstractmethod
    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """Return the items of ``rows`` [N] as arrays by name, the large ones made by ``empty``."""


def rows_ahead(storage: Storage, rows: IntArray, length: int) -> tuple[IntArray, BoolArray]:
    """Return rows int64 [length + 1, N] from ``rows`` [N] on, and which are of the same episode.

    Behind an episode's last row, that row is repeated.
    """
    return _along(storage, storage.following, ENDS, rows, range(length + 1))


def rows_behind(storage: Storage, rows: IntArray, length: int) -> tuple[IntArray, BoolArray]:
    """Return rows int64 [length + 1, N] up to ``rows`` [N], and which are of the same episode.

    Before an episode's first row, that row is repeated.
    """
    return _along(storage, storage.before, START, rows, range(length, -1, -1))


def _along(
    storage: Storage, links: IntArray, bounds: int, rows: IntArray, places: range
) -> tuple[IntArray, BoolArray]:
    """Follow ``links`` from ``rows`` [N], but not from a row with a flag of ``bounds``.

    Return the rows int64 [len(places), N], of which ``rows`` are at the first place, and whether
    each was reached; if not, the last one that was is there.
    """
    found = np.empty((len(places), len(rows)), np.int64)
    belongs = np.ones(found.shape, np.bool_)
    found[places[0]] = rows
    for here, there in pairwise(places):
        next_rows, flags = links[found[here]], storage.flags[found[here]]
        belongs[there] = belongs[here] & (next_rows != NONE) & (flags & bounds == 0)
        found[there] = np.where(belongs[there], next_rows, found[here])
    return found, belongs


def side_by_side(
    storage: Storage, column: Array, rows: IntArray, count: int, empty: Empty
) -> Array:
    """Return ``count`` arrays of ``column`` up to each of ``rows``, along the last axis.

    They are [*rows.shape, ..., count * C], oldest first, of one episode: see ``rows_behind``.
    """
    if count == 1:
        return gather(column, rows, empty)
    width = column.shape[-1]
    stacks = empty((*rows.shape, *column.shape[1:-1], count * width), column.dtype)
    for place, behind in enumerate(rows_behind(storage, rows.ravel(), count - 1)[0]):
        part = stacks[..., place * width : (place + 1) * width]
        part[...] = column[behind.reshape(rows.shape)]
    return stacks


@dataclass(frozen=True)
class Transitions(View):
    """Transitions over ``steps`` steps, shorter where an episode ends before.

    Of each, ``observation`` and ``action`` of its first step, ``next_observation``, ``return``, the
    sum of discount**k r_{t+k}, and ``discount``, discount**n after n steps and 0 after the end of
    an episode, so that a target is ``return + discount * value`` (Hessel et al. 2018, equation 1).
    Named observations, ``observation/NAME``, are read alike.
    ``observation`` is a stack [N, stack, ...] of the frames up to its row if ``stack`` is above 1,
    the first frame of an episode repeated. With one step, both stacks may share memory.
    """

    steps: int = 1
    discount: float = 1.0
    stack: int = 1
    observation: str = "observation"
    reward: str = "reward"
    stride: int = field(default=1, init=False)
    crosses_episodes: bool = field(default=False, init=False)

    @property
    def ahead(self) -> int:
        """See View."""
        return self.steps

    @property
    def behind(self) -> int:
        """See View."""
        return self.stack - 1

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: every step, as long as an action was taken in it."""
        taken: BoolArray = storage.flags[rows] & FINAL == 0
        return taken

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        found, belongs = rows_ahead(storage, rows, self.steps)
        flags = storage.flags[found[:-1]]
        # The row of an episode's end is repeated in ``found``: it counts once.
        counts = belongs[:-1] & (flags & FINAL == 0)
        rewards = np.where(counts, storage.columns[self.reward][found[:-1]], 0)
        factors = self.discount ** np.arange(self.steps, dtype=np.float32)
        terminated = (counts & (flags & TERMINATED != 0)).any(axis=0)
        transition = {
            "return": (rewards * factors[:, np.newaxis]).sum(axis=0),
            "discount": np.where(terminated, 0, self.discount ** counts.sum(axis=0)),
        }
        for name, column in storage.columns.items():
            if self._is_observed(name):
                before, behind = self._observed(storage, column, found, empty)
                transition[name], transition[f"next_{name}"] = before, behind
            elif name != self.reward:
                transition[name] = gather(column, rows, empty)
        return transition

    def _is_observed(self, name: str) -> bool:
        return name == self.observation or name.startswith(f"{self.observation}{SEPARATOR}")

    def _observed(
        self, storage: Storage, column: Array, found: IntArray, empty: Empty
    ) -> tuple[Array, Array]:
        """Return the observations in the first row of each item, and in the last."""
        if self.stack == 1:
            return gather(column, found[0], empty), gather(column, found[-1], empty)
        first = rows_behind(storage, found[0], self.stack - 1)[0]
        if self.steps == 1:
            # Both stacks have all frames but one in common, which are read once. Behind the end of
            # an episode the second one has no meaning in either case.
            frames = gather(column, np.concatenate([first, found[1:]]).T, empty)
            return frames[:, :-1], frames[:, 1:]
        last = rows_behind(storage, found[-1], self.stack - 1)[0]
        return gather(column, first.T, empty), gather(column, last.T, empty)


class _Stretch(View):
    """``length`` rows and up to ``burn_in`` rows before them: arrays are time-major.

    Beside the columns there are ``flags``, and ``valid``, 1 in rows with an action.
    """

    item_axis: ClassVar[int] = 1

    length: int
    burn_in: int
    #: By column: how many arrays are side by side; see ``Rollouts``.
    histories: Mapping[str, int] = MappingProxyType({})

    @property
    def ahead(self) -> int:
        """See View."""
        return self.length

    @property
    def behind(self) -> int:
        """See View."""
        return self.burn_in

    def _columns(self, storage: Storage, found: IntArray, empty: Empty) -> dict[str, Array]:
        columns = {
            name: side_by_side(storage, column, found, self.histories.get(name, 1), empty)
            for name, column in storage.columns.items()
        }
        columns["flags"] = storage.flags[found]
        columns["valid"] = columns["flags"] & FINAL == 0
        return columns


@dataclass(frozen=True)
class Windows(_Stretch):
    """Windows of ``length`` steps, one at each ``stride`` steps of an episode.

    Before each are up to ``burn_in`` rows, from which a recurrent network finds its state
    (Kapturowski et al. 2019), and behind it one row for the bootstrap value. Columns are
    time-major, [burn_in + length + 1, N, ...], with ``valid``, 1 in rows of the window or its
    burn-in with an action, else 0, and ``flags``. Rows that an episode lacks repeat its first or
    last.
    """

    length: int
    stride: int = 1
    burn_in: int = 0
    crosses_episodes: bool = field(default=False, init=False)

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: a step at each ``stride`` of an episode."""
        taken = storage.flags[rows] & FINAL == 0
        chosen: BoolArray = taken & (storage.positions[rows] % self.stride == 0)
        return chosen

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        after, is_after = rows_ahead(storage, rows, self.length)
        found, belongs = after, is_after
        if self.burn_in:
            before, is_before = rows_behind(storage, rows, self.burn_in)
            found = np.concatenate([before[:-1], after])
            belongs = np.concatenate([is_before[:-1], is_after])
        window = self._columns(storage, found, empty)
        window["valid"] &= belongs
        return window


@dataclass(frozen=True)
class Rows(View):
    """Each row is an item, whatever is before it and behind: its columns [N, ...] and ``flags``."""

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: all of them."""
        return np.ones(len(rows), np.bool_)

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        columns = {name: gather(column, rows, empty) for name, column in storage.columns.items()}
        return {**columns, "flags": storage.flags[rows]}


class Episodes(Windows):
    """Whole episodes, each an item once it is over; only the first ``longest`` steps of it.

    Columns are as of ``Windows``, [longest + 1, N, ...]: the rows behind an episode's last one
    repeat it, and are not ``valid``. No row is, of an episode that was abandoned before.
    """

    def __init__(self, longest: int) -> None:
        super().__init__(length=longest, stride=longest)

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: the first step of an episode."""
        flags = storage.flags[rows]
        chosen: BoolArray = (flags & START != 0) & (flags & FINAL == 0)
        return chosen

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        episodes = super().read(storage, rows, empty)
        episodes["valid"] &= episodes["flags"][-1] & ABANDONED == 0
        return episodes


@dataclass(frozen=True)
class Rollouts(_Stretch):
    """Each ``length`` rows that a slot has stored, and the row after them.

    Columns are time-major, [burn_in + length + 1, N, ...]. The last row is for the bootstrap value,
    and is the first one of the next item, unless items ``overlap`` by so many rows; with -1 it is
    in none, so that an item is complete before the next one begins. Beside the columns there are
    ``flags``; ``begins``, 1 in the first known row of an episode; and ``valid``, 1 in a row of the
    ``length`` with an action.
    Before them are up to ``burn_in`` rows of the same episode, from which a recurrent network finds
    its state (Kapturowski et al. 2019, https://openreview.net/forum?id=r1lyTjAqYX, section 3); if
    there are fewer, the first row is repeated with ``begins``. A column that is named in
    ``histories`` has so many of the latest arrays of the episode side by side along the last axis,
    oldest first, and the first one repeated where there are fewer.
    """

    length: int
    burn_in: int = 0
    overlap: int = 0
    #: Not written: the stored columns differ with them.
    histories: Mapping[str, int] = field(default_factory=dict, repr=False, hash=False)
    crosses_episodes: bool = field(default=True, init=False)

    @property
    def stride(self) -> int:
        """See View."""
        return self.length - self.overlap

    @property
    def behind(self) -> int:
        """See View: of a burn-in, or of the first row's history."""
        return max([self.burn_in, *(length - 1 for length in self.histories.values())])

    def items(self, storage: Storage, rows: IntArray) -> BoolArray:
        """See View: a row at each ``stride`` of a slot."""
        chosen: BoolArray = storage.numbers[rows] % self.stride == 0
        return chosen

    def read(self, storage: Storage, rows: IntArray, empty: Empty = np.empty) -> dict[str, Array]:
        """See View."""
        before, belongs = rows_behind(storage, rows, self.burn_in)
        found = np.concatenate([before, self._after(storage, rows)])
        columns = self._columns(storage, found, empty)
        columns["begins"] = self._begins(storage, found, belongs)
        columns["valid"][: self.burn_in] = False
        columns["valid"][-1] = False
        return columns

    def _after(self, storage: Storage, rows: IntArray) -> IntArray:
        found = np.empty((self.length, len(rows)), np.int64)
        for step in range(self.length):
            rows = found[step] = storage.following[rows]
        return found

    def _begins(self, storage: Storage, found: IntArray, belongs: BoolArray) -> BoolArray:
        """Return where a recurrent network begins anew: bool [burn_in + length + 1, N]."""
        earlier = storage.before[found]
        follows_an_end = (earlier != NONE) & (storage.flags[earlier] & ENDS != 0)
        begins: BoolArray = follows_an_end | (storage.flags[found] & START != 0)
        # Rows that stand for missing ones, and the first one behind them.
        begins[: self.burn_in] |= ~belongs[:-1]
        begins[1 : self.burn_in + 1] |= ~belongs[:-1]
        return begins
