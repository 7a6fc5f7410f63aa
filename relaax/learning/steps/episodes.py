"""Whole episodes, of which a row each is stored: the return, the length, and whose they are.

For methods that score policies by their returns alone, and need no observations and no actions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.arrays import zero_padded
from relaax.learning.filters import Filters
from relaax.learning.rollouts.columns import Columns
from relaax.observations import Observations
from relaax.replay.schema import Column, Schema
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ABANDONED, ENDS, FINAL, REWARD, START, STEPS, TERMINATED, Flags
from relaax.replay.table import Sample

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: The column of statistics that filters have gathered since the row before.
STATISTICS = "statistics"


@dataclass(frozen=True)
class EpisodeRows:
    """Which rows are stored of episodes."""

    #: So many of an episode's first steps count.
    longest: int
    #: The length of the statistics of filters; 0 without any.
    statistics: int = 0


@dataclass(frozen=True)
class EpisodeBatch:
    """K episodes."""

    #: float32 [K]: the sum of rewards of the first steps, at most of ``EpisodeRows.longest``.
    returns: FloatArray
    #: int64 [K]: environment steps that were taken since the row before.
    steps: IntArray
    #: bool [K]: whether all steps that count were played; not so where an environment left, or
    #: began anew.
    is_complete: BoolArray
    #: [K, ...] by name: labels of the policies and agents that played.
    extras: Mapping[str, Array]
    #: float32 [K, S]: gathered by filters in workers since the row before.
    statistics: FloatArray


def episode_schema(columns: Columns, rows: EpisodeRows) -> Schema:
    """Return the columns of an episode: its return, its steps, and its labels.

    ValueError for an extra that is chosen in each step.
    """
    if wrong := columns.of_policy:
        raise ValueError(
            f"extras: {wrong[0]}: is chosen in each step, and episodes are stored in one row"
        )
    own = {REWARD: Column(np.dtype(np.float32)), STEPS: Column(np.dtype(np.int64))}
    if rows.statistics:
        own[STATISTICS] = Column(np.dtype(np.float32), (rows.statistics,))
    return Schema({**own, **columns.extras})


def episodes_of(sample: Sample) -> EpisodeBatch:
    """Return the episodes of a sample: ``Input.prepare`` of a table with a view ``Rows``."""
    columns = dict(sample.columns)
    flags, returns, steps = (columns.pop(name) for name in ("flags", REWARD, STEPS))
    none = np.zeros((len(flags), 0), np.float32)
    statistics = columns.pop(STATISTICS, none)
    return EpisodeBatch(returns, steps, flags & ABANDONED == 0, columns, statistics)


class EpisodeRecorder:
    """Adds up the rewards of each environment's episode, until it is over or long enough.

    It takes the same calls as ``StepRecorder``. Policies must play episodes from end to end: the
    labels of a row are those of the episode's newest step. States are gathered by ``filters``,
    whose statistics go with the first of the rows that are handed over next. Later steps of an
    episode that is long enough are counted with the next row. Other actions that an environment
    has executed earn what they earn.
    """

    def __init__(self, columns: Columns, longest: int, filters: Filters) -> None:
        self._longest, self._filters = longest, filters
        self._actions = columns.actions(0)
        self._extras = columns.extras_of(0)
        self._flags: Flags = np.zeros(0, np.uint8)
        #: Sums of rewards; steps of the episode, and those that no row has counted.
        self._returns = np.zeros(0)
        self._lengths, self._uncounted = np.zeros(0, np.int64), np.zeros(0, np.int64)
        #: Whether an episode was begun, and not handed over.
        self._is_open: BoolArray = np.zeros(0, np.bool_)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        for name in ("actions", "flags", "returns", "lengths", "uncounted", "is_open"):
            setattr(self, f"_{name}", zero_padded(getattr(self, f"_{name}"), capacity, axis=0))
        self._extras = {
            name: zero_padded(part, capacity, axis=0) for name, part in self._extras.items()
        }

    def fitting(self, observations: Observations) -> Observations:
        """Return observations as they are: none is kept."""
        return observations

    def forget(self, slots: IntArray) -> StepBatch | None:
        """Return the episodes and steps that ``slots`` have begun; unfinished ones are abandoned.

        The later steps of an episode that was handed over before are an abandoned one.
        """
        is_unfinished = ~self._is_open[slots] | (self._flags[slots] & ENDS == 0)
        self._flags[slots[is_unfinished]] = FINAL | ABANDONED
        return self._taken(slots[self._uncounted[slots] > 0])

    def reward(self, slots: IntArray, rewards: Array, terminated: Array | bool) -> None:
        """Add what the newest actions of ``slots`` have earned; note which episodes that ended."""
        self._returns[slots] += np.where(self._lengths[slots] < self._longest, rewards, 0)
        self._lengths[slots] += 1
        self._uncounted[slots] += 1
        self._flags[slots] |= np.where(terminated, TERMINATED, 0).astype(np.uint8)

    def chosen(self, slots: IntArray) -> Array:
        """Return the actions [X, ...] that were chosen in the newest steps of ``slots``."""
        return self._actions[slots]

    def executed(self, slots: IntArray, actions: Array) -> None:
        """Do nothing: returns are those of the actions that were executed."""

    def cut_last(self, slots: IntArray) -> None:
        """Note that the episodes of ``slots`` were abandoned."""
        self._flags[slots] |= FINAL | ABANDONED

    def observe(
        self, slots: IntArray, observations: Observations, starts: Array | bool
    ) -> StepBatch | None:
        """Begin a step in each of ``slots``; return the episodes that are over, if any.

        An episode that begins before the end of the previous one abandons that.
        """
        self._filters.gather(observations)
        is_start = np.broadcast_to(np.asarray(starts, np.bool_), slots.shape)
        flags = self._flags[slots]
        is_cut = is_start & (flags & ENDS == 0)
        is_long = ~is_start & (self._lengths[slots] >= self._longest)
        self._flags[slots[is_cut]] |= FINAL | ABANDONED
        self._flags[slots[is_long]] |= FINAL
        is_over = self._is_open[slots] & (self._lengths[slots] > 0) & (is_start | is_long)
        over = self._taken(slots[is_over])
        self._begin(slots[is_start])
        return over

    def cut_off(self, slots: IntArray, finals: Observations) -> StepBatch | None:
        """Return the episodes of ``slots``, which a limit of time has ended."""
        self._flags[slots] |= FINAL
        return self._taken(slots[self._is_open[slots]])

    def record(
        self,
        slots: IntArray,
        actions: Array,
        extras: Mapping[str, Array],
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Note what was chosen in the steps just begun."""
        self._actions[slots] = actions
        for name, part in self._extras.items():
            part[slots] = extras[name]

    def _begin(self, slots: IntArray) -> None:
        self._returns[slots], self._lengths[slots], self._flags[slots] = 0, 0, 0
        self._is_open[slots] = True

    def _taken(self, slots: IntArray) -> StepBatch | None:
        """Return the episodes of ``slots``, each in a row, and count their steps."""
        if len(slots) == 0:
            return None
        rows = StepBatch(
            slots=slots,
            flags=self._flags[slots] | np.uint8(START),
            columns={
                REWARD: self._returns[slots].astype(np.float32),
                STEPS: self._uncounted[slots],
                STATISTICS: self._statistics(len(slots)),
                **{name: part[slots] for name, part in self._extras.items()},
            },
        )
        self._uncounted[slots] = 0
        self._is_open[slots] = False
        return rows

    def _statistics(self, count: int) -> FloatArray:
        """Return the gathered statistics in the first of ``count`` rows [count, S]."""
        rows = np.zeros((count, self._filters.length), np.float32)
        for taken in self._filters.taken():
            rows[0] = taken.vector
        return rows
