"""Checks states and stacks the latest ones into observations."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.errors import InvalidState, did_you_mean_one_of
from relaax.learning.action_mask import ActionMask
from relaax.learning.arrays import aligned_empty, zero_padded
from relaax.learning.filters import ZFilter
from relaax.learning.filters.statistics import LARGEST
from relaax.learning.shapes import GREY, length_alone, lengths_by_name, needs_axis, written_size
from relaax.observations import (
    UNNAMED,
    Observations,
    Shape,
    Shapes,
    as_numbers,
    flattened,
    why_no_numbers,
)

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

_NO_FILTERS: Mapping[str, ZFilter] = {}
_NOTHING_ADDED: Mapping[str, Shape] = {}

_FLOAT = np.dtype(np.float32)


class Preprocessor:
    """Checks states and stacks the latest ones into observations.

    ``state_size`` is the shape of one state, or the shapes of its arrays by name; ``history_len``
    says how many of the latest ones are put side by side, for all of them or by name. Among named
    arrays may be an ``action_mask``. Numbers and vectors may have ``filters``, by name, which see
    each state once. Those that will be ``filtered_later`` stay float64, as all that is filtered
    must be until its mean is subtracted. No client sends what is ``added`` to checked states here.
    """

    def __init__(
        self,
        state_size: Shapes,
        history_len: int | Mapping[str, int] = 1,
        action_mask: ActionMask | None = None,
        filters: Mapping[str, ZFilter] = _NO_FILTERS,
        filtered_later: Collection[str] = (),
        added: Mapping[str, Shape] = _NOTHING_ADDED,
    ) -> None:
        def history_of(name: str, shape: Shape, length: int) -> _History:
            return _History(shape, length, name, filters.get(name), name in filtered_later)

        self._alone: _History | None = None
        #: What is sent by name, and all that is observed by name.
        self._sent: dict[str, _History | _Masks] = {}
        self._parts: dict[str, _History | _Masks] = {}
        self._written_size = written_size(state_size)
        if not isinstance(state_size, Mapping):
            self._alone = history_of(UNNAMED, state_size, length_alone(history_len))
            self._parts = {UNNAMED: self._alone}
        else:
            lengths = lengths_by_name(state_size, history_len)
            for name, shape in state_size.items():
                self._sent[name] = history_of(name, shape, lengths[name])
            if action_mask is not None:
                self._sent[action_mask.name] = _Masks(action_mask)
            self._parts = dict(self._sent)
        for name, shape in added.items():
            length = 1 if isinstance(history_len, Mapping) else history_len
            self._parts[name] = history_of(name, shape, length)

    def check(self, states: Sequence[Any] | Observations) -> Observations:
        """Return states of B environments as an array [B, ...] or as arrays by name.

        ``states`` are an array, arrays by name, or a sequence of B states, of which each is an
        array or maps names, perhaps nested ones, to arrays. InvalidState says what does not fit.
        Images of bytes stay so, masks become bytes, what is filtered is float64, and all else is
        float32.
        """
        if self._alone is not None:
            if isinstance(states, dict):
                raise InvalidState(
                    f"a state has the names {', '.join(states)}, and is not an array of numbers; "
                    f"the configuration says state_size: {self._written_size}"
                )
            return self._alone.check(states)
        arrays = self._by_name(states)
        checked = {name: part.check(arrays[name]) for name, part in self._sent.items()}
        if len({len(array) for array in checked.values()}) > 1:
            counts = ", ".join(f"{len(array)} of {name}" for name, array in checked.items())
            raise InvalidState(f"observations are of different numbers of environments: {counts}")
        return checked

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        for part in self._parts.values():
            part.grow(capacity)

    def observe(
        self, slots: IntArray, states: Observations, starts: BoolArray | None, rows: int = 0
    ) -> Observations:
        """Return the observations [B, ...] after new states [B, ...] of ``slots`` [B].

        ``states`` are from ``check``. ``starts`` bool [B]: which are the first of an episode; None:
        not one. Where states are stacked, and ``rows`` is more than B, zeros follow behind the
        observations up to so many rows, so that a batch need not be copied to be padded.
        """
        if not isinstance(states, dict):
            alone = self._alone
            return states if alone is None else alone.observe(slots, states, starts, rows)
        return {
            name: part.observe(slots, states[name], starts, rows)
            for name, part in self._parts.items()
        }

    def _by_name(self, states: Sequence[Any] | Observations) -> dict[str, Any]:
        """Return what was sent by name, an array [B, ...] or a list of B states for each."""
        if isinstance(states, dict):
            return self._same_names(states)
        if not len(states):
            return {name: part.none() for name, part in self._sent.items()}
        if not all(isinstance(state, Mapping) for state in states):
            raise InvalidState(
                "a state has no names; the configuration says state_size: " + self._written_size
            )
        try:
            flat = [self._same_names(flattened(state)) for state in states]
        except ValueError as error:
            raise InvalidState(str(error)) from error
        return {name: [state[name] for state in flat] for name in self._sent}

    def _same_names(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return ``state``; InvalidState unless it has the names of all parts and no other."""
        if state.keys() == self._sent.keys():
            return state
        for name in sorted(state.keys() - self._sent.keys()):
            hint = did_you_mean_one_of(name, self._sent)
            raise InvalidState(
                f"the configuration knows no observation {name:.100}, it says "
                f"state_size: {self._written_size}{hint}"
            )
        missing = ", ".join(sorted(self._sent.keys() - state.keys()))
        raise InvalidState(
            f"a state lacks {missing}, the configuration says state_size: {self._written_size}"
        )


class _History:
    """The last ``history_len`` states of each environment, side by side along the last axis.

    At the start of an episode the first state fills the whole history, so that nothing of the
    episode before is seen; every later state pushes the oldest one out.

    ``state_size`` is the shape of one state; a number and a grey image [H, W] get an axis to stack
    along. What ``is_filtered_later`` is as exact as what has a filter.
    """

    def __init__(
        self,
        state_size: Shape,
        history_len: int,
        name: str,
        z_filter: ZFilter | None,
        is_filtered_later: bool,
    ) -> None:
        self._filter = z_filter
        is_exact = is_filtered_later or z_filter is not None
        self._type: np.dtype[Any] = np.dtype(np.float64 if is_exact else np.float32)
        self._state_size = state_size
        self._name = name
        self._needs_axis = needs_axis(state_size)
        self._length = history_len
        self._capacity = 0
        self._histories: Array | None = None

    def check(self, states: Sequence[Any] | Array) -> Array:
        """Return states of B environments as an array [B, ...]; InvalidState if they are none.

        Images of bytes stay so. All else is of one type, so that vectors of all clients are: bytes
        are scaled to [0, 1] as a network scales them.
        """
        array = _as_numbers(states, self._name, self._type)
        if array.dtype == np.uint8 and len(self._state_size) < GREY:
            array = array / self._type.type(255)
        if array.shape[1:] != self._state_size:
            raise InvalidState(
                f"{_what(self._name)} has shape {list(array.shape[1:])}, "
                f"the configuration says state_size: {written_size(self._state_size, self._name)}"
            )
        return array[..., np.newaxis] if self._needs_axis else array

    def none(self) -> Array:
        """Return states of no environment."""
        return np.zeros((0, *self._state_size), self._type)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        if self._histories is not None:
            self._histories = zero_padded(self._histories, capacity, axis=0)
        self._capacity = capacity

    def observe(
        self, slots: IntArray, states: Array, starts: BoolArray | None, rows: int = 0
    ) -> Array:
        """Return the observations [B, ...] of this array, as ``Preprocessor.observe``."""
        if self._filter is not None:
            states = self._filter.filtered(states)
        if self._length == 1:
            return states
        histories = self._histories
        if histories is None or histories.dtype != states.dtype:
            shape = (self._capacity, *states.shape[1:-1], states.shape[-1] * self._length)
            histories = self._histories = np.zeros(shape, states.dtype)
        count = len(slots)
        stacked = aligned_empty((max(count, rows), *histories.shape[1:]), histories.dtype)
        stacked[count:] = 0
        np.take(histories, slots, axis=0, out=stacked[:count])
        self._stack(stacked[:count], states, starts)
        histories[slots] = stacked[:count]
        return stacked

    def _stack(self, histories: Array, newest: Array, starts: BoolArray | None) -> None:
        """Push ``newest`` [B, ...] into ``histories`` [B, ...], which are changed in place."""
        width = newest.shape[-1]
        # One move of the flat array instead of many short ones: what it brings into the last
        # places of each row is overwritten.
        flat = histories.reshape(-1)
        flat[:-width] = flat[width:]
        histories[..., -width:] = newest
        for row in () if starts is None else np.flatnonzero(starts):
            histories[row] = np.concatenate([newest[row]] * self._length, axis=-1)


class _Masks:
    """Masks of actions: bytes, 1 where an action is allowed."""

    def __init__(self, mask: ActionMask) -> None:
        self._mask = mask

    def check(self, states: Sequence[Any] | Array) -> Array:
        """Return uint8 [B, actions]; InvalidState for other numbers than 0 and 1, and no action."""
        array = _numbers(states, self._mask.name)
        if array.shape[1:] != (self._mask.outputs,):
            raise InvalidState(
                f"{_what(self._mask.name)} has shape {list(array.shape[1:])}; "
                f"an action mask has {self._mask.outputs} numbers"
            )
        allowed: Array = array == 1
        others = array[~allowed & (array != 0)]
        if others.size:
            raise InvalidState(
                f"the action mask {self._mask.name} holds {others[0]:g}: write 1 for an action "
                "that is allowed and 0 for one that is not. Numbers that are added to logits, such "
                "as 0 and -inf, mean the opposite"
            )
        self._mask.require_choice(allowed)
        return allowed.view(np.uint8)

    def none(self) -> Array:
        """Return masks of no environment."""
        return np.zeros((0, self._mask.outputs), np.uint8)

    def grow(self, capacity: int) -> None:
        """Do nothing: masks have no history."""

    def observe(
        self, slots: IntArray, states: Array, starts: BoolArray | None, rows: int = 0
    ) -> Array:
        """Return ``states``."""
        return states


def _what(name: str) -> str:
    return f"the observation {name}" if name else "a state"


def _as_numbers(states: Sequence[Any] | Array, name: str, kind: np.dtype[Any]) -> Array:
    """Return bytes as they are and all other numbers as ``kind``, finite in float32."""
    if type(states) is np.ndarray and states.dtype == kind:
        return _finite(states, name)
    array = _numbers(states, name)
    if array.dtype == np.uint8:
        return array
    with np.errstate(over="ignore"):
        array = array.astype(kind, copy=False)
    return _finite(array, name)


def _numbers(states: Sequence[Any] | Array, name: str) -> Array:
    """Return numbers as they are; InvalidState says why there are none."""
    array = as_numbers(states)
    if array is None:
        what = _what(name)
        raise InvalidState(f"{what} is not an array of numbers: {_why(what, states)}")
    return array


def _why(what: str, states: Any) -> str:
    """Return why the first of ``states`` that is no array of numbers is none."""
    for state in states if isinstance(states, list | tuple) else ():
        if as_numbers(state) is None:
            return why_no_numbers(what, state)
    return why_no_numbers(what, states)


def _finite(array: Array, name: str) -> Array:
    # Reductions are faster than .all() if small. NaN compares with nothing.
    is_finite = np.isfinite(array) if array.dtype == _FLOAT else np.abs(array) <= LARGEST
    if not np.logical_and.reduce(is_finite, axis=None):
        raise InvalidState(f"{_what(name)} has a value that is not finite in float32")
    return array
