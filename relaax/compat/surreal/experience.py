"""Hands the steps of one environment on, each once, and none of them lost at an episode's end."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from relaax.algorithm_base import ConfigBase, ExperienceSink
from relaax.errors import ConfigurationError
from relaax.learning.rollouts import LOG_PROBABILITY, Columns
from relaax.learning.steps import StepRecorder
from relaax.observations import UNNAMED, mapped
from relaax.replay.step_batch import StepBatch
from relaax.spaces import Space, is_nested, members, shape_of, written

_SLOT = np.zeros(1, np.int64)

_NO_RECURRENT_STATE = np.zeros((2, 1, 0), np.float32)


def columns_of(config: ConfigBase) -> Columns:
    """Return shapes and types of states and actions; ConfigurationError if they are not known."""
    observed, acted = config.observation_space(), config.action_space()
    action_shape = None if acted is None else shape_of(acted)
    if observed is None or acted is None or action_shape is None:
        raise ConfigurationError(
            "observation_space() and action_space() of the configuration must say what is stored "
            f"of a step, and are {written(observed)} and {written(acted)}"
        )
    shape, dtype = _shape_and_dtype(observed)
    types = dtype if isinstance(dtype, dict) else {UNNAMED: dtype}
    return Columns(
        observation_shape=shape,
        observation_dtype=mapped(lambda each: each or np.float32, dtype),
        action_shape=action_shape,
        action_dtype=acted.get("dtype", "float32") if acted["type"] == "Box" else np.int64,
        open_types=frozenset(name for name, given in types.items() if given is None),
    )


def _shape_and_dtype(space: Space) -> tuple[Any, Any]:
    """Return shape and type of an array, or shapes and types by name; None for one not said."""
    if is_nested(space):
        parts = {name: _shape_and_dtype(inner) for name, inner in members(space)}
        shapes = {name: shape for name, (shape, _) in parts.items()}
        return shapes, {name: dtype for name, (_, dtype) in parts.items()}
    return shape_of(space), space.get("dtype")


class Acted(NamedTuple):
    """An action, and how probable it was: what ``act`` may return in the place of the action."""

    action: Any
    #: Its logarithm.
    log_probability: float = 0.0


class ExperienceSender:
    """Makes steps of what an actor observes, does and earns, and puts them into ``sink``.

    The replay makes n-step returns and windows of them when they are drawn: a step is sent once,
    and an episode's last steps become items with shorter horizons.
    """

    def __init__(self, columns: Columns, sink: ExperienceSink[StepBatch]) -> None:
        self._columns = columns
        self._recorder = StepRecorder(columns, sink=sink)
        self._recorder.grow(1)
        self._sink = sink
        #: Whether steps were taken from the recorder that the sink has not been given: what put
        #: them was interrupted, by a signal for instance.
        self._has_gap = False

    def begin(self, state: Any, acted: Acted, *, starts: bool, version: int) -> None:
        """Begin a step: what was observed and done, with the parameters of ``version``.

        Where a step before it was lost, an episode begins: what is left of the one before is not
        sent.
        """
        if self._has_gap:
            self._recorder.forget(_SLOT)
            starts = True
        self._put(lambda: self._recorder.observe(_SLOT, self._batch_of_one(state), starts))
        self._recorder.record(
            _SLOT,
            np.asarray(acted.action)[np.newaxis],
            {LOG_PROBABILITY: np.array([acted.log_probability], np.float32)},
            _NO_RECURRENT_STATE,
            version,
        )

    def executed(self, action: Any) -> None:
        """Note that another action was executed than the one with which the step began.

        It is stored in its place; ``on_policy`` is false, and says that the probability is not its.
        """
        self._recorder.executed(_SLOT, np.asarray(action)[np.newaxis])

    def end(self, reward: float, *, terminated: bool) -> None:
        """Complete the step: what it has earned, and whether nothing more can be."""
        self._recorder.reward(_SLOT, np.array([reward], np.float32), np.array([terminated]))
        if terminated:
            self._put(lambda: self._recorder.forget(_SLOT))

    def cut_off(self, state: Any) -> None:
        """Note the state in which the episode was cut off: its value is not 0."""
        self._put(lambda: self._recorder.cut_off(_SLOT, self._batch_of_one(state)))

    def give_up(self) -> None:
        """Hand on what was begun: an episode that is left ends in its newest state.

        Not so where a step before it was lost, because putting it was interrupted.
        """
        if not self._has_gap:
            self._put(lambda: self._recorder.forget(_SLOT))

    def _put(self, take: Callable[[], StepBatch | None]) -> None:
        self._has_gap = True
        steps = take()
        if steps is not None:
            self._sink.put(steps)
        self._has_gap = False

    def _batch_of_one(self, state: Any) -> Any:
        """Return a state, or its arrays by name, as a batch [1, ...].

        Floats are of 32 bits, as everywhere in learning, unless the configuration says a ``dtype``.
        """
        if not isinstance(state, dict):
            return self._stored(UNNAMED, state)
        return {name: self._stored(name, part) for name, part in state.items()}

    def _stored(self, name: str, part: Any) -> Any:
        array = np.asarray(part)[np.newaxis]
        is_usual = name in self._columns.open_types and array.dtype.kind == "f"
        return array.astype(np.float32, copy=False) if is_usual else array
