"""Records single steps of many environments, for a replay.

It takes the same calls as ``RolloutStore``, so that an ``Actor`` has one or the other.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState
from relaax.learning.arrays import zero_padded
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.rollouts.columns import Columns
from relaax.observations import SEPARATOR, UNNAMED, Observations, mapped
from relaax.replay.schema import Column, Schema
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ABANDONED, FINAL, REWARD, START, STEPS, TERMINATED, VERSION, Flags
from relaax.replay.table import Sample

Array = npt.NDArray[Any]

RECURRENT_STATE = "recurrent_state"

OBSERVATION, ACTION, ON_POLICY = "observation", "action", "on_policy"

#: The extra that ``weighed_rollouts_of`` adds.
LIKELIHOOD = "likelihood"


#: The columns of every algorithm, and those that views add to them.
_NO_EXTRAS = frozenset(
    {ACTION, REWARD, STEPS, VERSION, ON_POLICY, RECURRENT_STATE}
    | {"flags", "valid", "begins", "return", "discount"}
)


def extras_in(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns that a policy has recorded of its choices, by name."""
    return {
        name: part
        for name, part in columns.items()
        if name not in _NO_EXTRAS and name.removeprefix("next_").split(SEPARATOR)[0] != OBSERVATION
    }


def rollouts_in(columns: Mapping[str, Array]) -> RolloutBatch:
    """Return the columns that a view of ``relaax.replay.views.Rollouts`` has read, as rollouts.

    Rows of a burn-in are rows that are not valid. ``versions`` are those of the oldest action of
    each rollout; of one without an action, the largest number that there is. Where versions are not
    stored they are 0, and each action is the one that was executed.
    """
    valid = columns["valid"][:-1]
    known = columns.get(VERSION, np.zeros(columns["valid"].shape, np.int64))
    versions = np.where(valid, known[:-1], np.iinfo(np.int64).max)
    return RolloutBatch(
        observations=observations_in(columns),
        starts=columns["begins"].astype(np.float32),
        actions=columns[ACTION][:-1],
        extras={name: part[:-1] for name, part in extras_in(columns).items()},
        rewards=columns[REWARD][:-1],
        terminated=(columns["flags"][:-1] & TERMINATED != 0).astype(np.float32),
        valid=valid.astype(np.float32),
        on_policy=(valid & columns.get(ON_POLICY, columns["valid"])[:-1]).astype(np.float32),
        recurrent_state=_first_state(columns),
        versions=versions.min(axis=0),
    )


def rollouts_of(sample: Sample) -> RolloutBatch:
    """Return the rollouts of a sample: ``Input.prepare`` of a table with a view ``Rollouts``."""
    return rollouts_in(sample.columns)


def weighed_rollouts_of(sample: Sample) -> RolloutBatch:
    """Return the same with one more of the ``extras``, ``LIKELIHOOD`` float32 [T, K].

    It says how likely each rollout was drawn, compared to the least likely item of its table. To
    the power -beta it is the weight of Schaul et al. 2016, section 3.4.
    """
    rollouts = rollouts_of(sample)
    likelihoods = (sample.probabilities / sample.least_probability).astype(np.float32)
    rows = np.broadcast_to(likelihoods, rollouts.valid.shape)
    return replace(rollouts, extras={**rollouts.extras, LIKELIHOOD: rows})


def _first_state(columns: Mapping[str, Array]) -> npt.NDArray[np.float32]:
    """Return the recurrent state before the first row, [2, K, H]; H is 0 without any."""
    stored = columns.get(RECURRENT_STATE)
    if stored is None:
        return np.zeros((2, columns["valid"].shape[1], 0), np.float32)
    first: npt.NDArray[np.float32] = stored[0].swapaxes(0, 1)
    return first


FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def schema_of(columns: Columns, *, is_on_policy: bool = True) -> Schema:
    """Return the columns that are stored of a step.

    The columns are ``observation``, or ``observation/NAME`` of each where they have names,
    ``action``, ``reward``, the extras of ``columns``, and the ``recurrent_state`` [2, H] before,
    where there is a recurrent layer; if it ``is_on_policy``, the ``version`` of the parameters that
    chose the action, and ``on_policy``: whether it was executed, and no other one in its place. The
    columns of ``open_types`` are open. ValueError for an extra with the name of another column.
    """
    one = {
        **_remembered(columns.recurrent_state(1)),
        **_observed(columns.observations(1)),
        ACTION: columns.actions(1),
        REWARD: np.zeros(1, np.float32),
    }
    extras = columns.extras_of(1)
    for name in extras.keys() - extras_in(extras).keys():
        raise ValueError(f"extras: {name}: another column has this name")
    one |= extras
    if is_on_policy:
        one |= {VERSION: np.zeros(1, np.int64), ON_POLICY: np.zeros(1, np.bool_)}
    is_open = {column_of(name) for name in columns.open_types}
    return Schema(
        {name: Column(array.dtype, array.shape[1:], name in is_open) for name, array in one.items()}
    )


def observations_in(columns: Mapping[str, Array], prefix: str = "") -> Observations:
    """Return the observations among columns, by name if they have names.

    ``prefix`` stands before their names: ``next_`` for those that follow.
    """
    alone, before = columns.get(prefix + OBSERVATION), f"{prefix}{OBSERVATION}{SEPARATOR}"
    named = {
        name.removeprefix(before): part for name, part in columns.items() if name.startswith(before)
    }
    if alone is None:
        return named
    return {UNNAMED: alone, **named} if named else alone


def side_by_side(histories: Array) -> Array:
    """Return histories [B, n, ..., C] of n states each as arrays [B, ..., n * C], oldest first.

    That is how a ``Preprocessor`` stacks them.
    """
    apart = np.moveaxis(histories, 1, -2)
    *others, length, width = apart.shape
    return apart.reshape(*others, length * width)


#: What is held of each step beside the observation.
_OF_STEPS = (
    "actions", "rewards", "flags", "versions", "on_policy", "is_open"
)  # fmt: skip


@runtime_checkable
class TypedSink(Protocol):
    """What stores steps of one type alone, whoever writes them."""

    def stored_types(self, types: Mapping[str, np.dtype[Any]]) -> Mapping[str, np.dtype[Any]]:
        """Return the types of columns by name that are stored: ``types`` where they were open."""
        ...


class StepRecorder:
    """Holds the newest step of every environment until what it led to is known.

    ``columns`` may have narrower observations than are handed over: of states that are side by side
    along the last axis, oldest first, the newest are kept. What is of an open type is of the type
    that ``sink`` stores, once observations have come, or of that of the first ones. Where another
    action was executed than the chosen one, it is recorded in its place, unless the recorder
    ``is_on_policy``: the chosen one stays, of which the likelihood is.
    """

    def __init__(
        self, columns: Columns, *, is_on_policy: bool = False, sink: object = None
    ) -> None:
        self._columns = columns
        self._sink = sink
        self._open = {column_of(name) for name in columns.open_types}
        self._is_on_policy = is_on_policy
        self._observations = columns.observations(0)
        self._is_settled = False
        self._actions = columns.actions(0)
        self._rewards = np.zeros(0, np.float32)
        self._flags: Flags = np.zeros(0, np.uint8)
        self._extras = columns.extras_of(0)
        self._versions = np.zeros(0, np.int64)
        self._on_policy: BoolArray = np.zeros(0, np.bool_)
        self._recurrent_state = columns.recurrent_state(0)
        #: Whether a step was begun, and not handed over.
        self._is_open: BoolArray = np.zeros(0, np.bool_)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        self._observations = mapped(
            lambda part: zero_padded(part, capacity, axis=0), self._observations
        )
        for name in _OF_STEPS:
            grown = zero_padded(getattr(self, f"_{name}"), capacity, axis=0)
            setattr(self, f"_{name}", grown)
        self._extras = mapped(lambda part: zero_padded(part, capacity, axis=0), self._extras)
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)

    def fitting(self, observations: Observations) -> Observations:
        """Return observations of the types that are stored; InvalidState for what is no such.

        Bytes of an image become what a network makes of them, where floats are stored.
        """
        if not self._is_settled:
            self._settle(observations)
        if isinstance(observations, dict):
            stored = cast(dict[str, Array], self._observations)
            return {
                name: _as_image_of(stored[name].dtype, part, name)
                for name, part in observations.items()
            }
        stored_alone = _observed(self._observations)[OBSERVATION]
        return _as_image_of(stored_alone.dtype, observations, UNNAMED)

    def forget(self, slots: IntArray) -> StepBatch | None:
        """Return what ``slots`` have begun: the end of an episode, or the state where it was cut.

        What the last action leads to will not be known.
        """
        begun = slots[self._is_open[slots]]
        goes_on = begun[self._flags[begun] & TERMINATED == 0]
        self._flags[goes_on] |= FINAL | ABANDONED
        return self._take(slots)

    def reward(self, slots: IntArray, rewards: Array, terminated: Array | bool) -> None:
        """Complete the newest step of ``slots``: what its action earned, and whether it ended."""
        self._rewards[slots] = rewards
        self._flags[slots] |= np.where(terminated, TERMINATED, 0).astype(np.uint8)

    def chosen(self, slots: IntArray) -> Array:
        """Return the actions [X, ...] that were chosen in the newest steps of ``slots``."""
        return self._actions[slots]

    def executed(self, slots: IntArray, actions: Array) -> None:
        """Note that ``slots`` executed these actions [X, ...] in the place of the chosen ones."""
        self._on_policy[slots] = False
        if not self._is_on_policy:
            self._actions[slots] = actions

    def cut_last(self, slots: IntArray) -> None:
        """Take back the last action of ``slots``: the episode was cut off in that state."""
        self._flags[slots] |= FINAL | ABANDONED

    def observe(
        self, slots: IntArray, observations: Observations, starts: Array | bool
    ) -> StepBatch | None:
        """Begin a step in each of ``slots``; return those that this completes, if any."""
        complete = self._take(slots)
        self._begin(slots, observations, np.where(starts, START, 0))
        return complete

    def cut_off(self, slots: IntArray, finals: Observations) -> StepBatch | None:
        """Note the states in which the episodes of ``slots`` were cut off; else as ``observe``."""
        complete = self._take(slots)
        self._begin(slots, finals, FINAL)
        self._actions[slots] = 0
        self._rewards[slots] = 0
        last = self._take(slots)
        parts = [part for part in (complete, last) if part is not None]
        return StepBatch.concatenated(parts) if parts else None

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
        self._versions[slots] = version
        self._on_policy[slots] = True
        self._recurrent_state[:, slots] = recurrent_state

    def _begin(self, slots: IntArray, observations: Observations, flags: Array | int) -> None:
        if not self._is_settled:
            self._settle(observations)
        parts, new = _observed(self._observations), _observed(observations)
        for name, part in parts.items():
            newest = new[name][..., -part.shape[-1] :] if part.ndim > 1 else new[name]
            if part.dtype.kind == "f" and newest.dtype == np.uint8 and name in self._open:
                raise _another_type(newest.dtype, part.dtype, name)  # bytes of an image, or not
            part[slots] = _kept_as(part.dtype, newest, name)
        self._flags[slots] = flags
        self._is_open[slots] = True

    def _settle(self, observations: Observations) -> None:
        """Let what is of an open type be of what is stored, or of the first ``observations``."""
        new = _observed(observations)
        types: Mapping[str, np.dtype[Any]] = {name: new[name].dtype for name in self._open}
        if types and isinstance(self._sink, TypedSink):
            types = self._sink.stored_types(types)

        def of_first(name: str, part: Array) -> Array:
            return part.astype(types[name]) if name in types else part

        if isinstance(self._observations, dict):
            self._observations = {
                name: of_first(column_of(name), part) for name, part in self._observations.items()
            }
        else:
            self._observations = of_first(OBSERVATION, self._observations)
        self._is_settled = True

    def _take(self, slots: IntArray) -> StepBatch | None:
        """Return the newest steps of those ``slots`` that have one."""
        taken = slots[self._is_open[slots]]
        if len(taken) == 0:
            return None
        self._is_open[taken] = False
        return StepBatch(
            slots=taken,
            flags=self._flags[taken],
            columns={
                **_observed(mapped(lambda part: part[taken], self._observations)),
                **_remembered(self._recurrent_state[:, taken]),
                ACTION: self._actions[taken],
                REWARD: self._rewards[taken],
                **mapped(lambda part: part[taken], self._extras),
                VERSION: self._versions[taken],
                ON_POLICY: self._on_policy[taken],
            },
        )


def _observed(observations: Observations) -> dict[str, Array]:
    """Return observations as columns."""
    if not isinstance(observations, dict):
        return {OBSERVATION: observations}
    return {column_of(name): part for name, part in observations.items()}


def column_of(name: str) -> str:
    """Return the column of the observation of this name; ``UNNAMED``: of one without a name."""
    return OBSERVATION if name == UNNAMED else f"{OBSERVATION}{SEPARATOR}{name}"


def _as_image_of(stored: np.dtype[Any], part: Array, name: str) -> Array:
    """Return an image as it is stored, if it is the same then; InvalidState if not."""
    if part.dtype == stored:
        return part
    if part.dtype == np.uint8 and stored == np.float32:
        return part / np.float32(255)
    raise _another_type(part.dtype, stored, name)


def _kept_as(stored: np.dtype[Any], part: Array, name: str) -> Array:
    """Return numbers as they are stored; InvalidState where they would not be the same."""
    if part.dtype == stored or stored.kind == "f":
        return part
    with np.errstate(invalid="ignore"):
        kept = part.astype(stored)
    if (kept != part).any():
        raise _another_type(part.dtype, stored, name)
    return kept


def _another_type(found: np.dtype[Any], stored: np.dtype[Any], name: str) -> InvalidState:
    what = f"the observation {name}" if name else "a state"
    return InvalidState(
        f"{what} is of {found}, and steps of this training are stored with {stored}, as they were "
        f"announced or first came: send {stored}"
    )


def _remembered(recurrent_state: FloatArray) -> dict[str, Array]:
    """Return states [2, B, H] as a column [B, 2, H]; none where H is 0."""
    if recurrent_state.shape[-1] == 0:
        return {}
    return {RECURRENT_STATE: recurrent_state.swapaxes(0, 1)}
