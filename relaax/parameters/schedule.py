"""Numbers that change with the global step, and their values in checkpoints."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.checkpoint import SCHEDULE
from relaax.errors import ConfigurationError

_log = logging.getLogger(__name__)

#: A learning rate that has fallen below this part of its first one has ended.
_ENDED = 0.01


@dataclass(frozen=True)
class Linear:
    """Goes from ``start`` to ``end`` within ``steps`` steps, from step ``begin`` on.

    It stays at ``start`` before that, and for ever where ``steps`` is infinite.
    """

    start: float
    end: float
    steps: float
    begin: float = 0.0

    def at(self, step: float) -> float:
        """Return the number at a step."""
        gone = step - self.begin
        part = min(1.0, max(0.0, gone / self.steps)) if self.steps > 0 else float(gone >= 0)
        return self.start + part * (self.end - self.start)


@dataclass(frozen=True)
class Schedule:
    """A number as the configuration describes it: linear from step ``begin`` until ``until``."""

    #: For messages.
    name: str
    start: float
    end: float
    until: float
    #: The key of ``until``.
    until_key: str
    begin: float = 0.0
    #: The key of ``begin``, where it has one.
    begin_key: str | None = None

    def line(self) -> Linear:
        """Return the number of a training that begins."""
        return Linear(self.start, self.end, self.until - self.begin, self.begin)


class Remembered:
    """A number by a ``Schedule``, times ``factor()``, which a resumed training goes on with.

    The schedule belongs to the training: where ``until`` is another one after a restart, the number
    goes on from its last value, linearly to its end at the new ``until``. With another ``begin``,
    ``start`` or ``end`` it is a new one. ConfigurationError where there is a ``begin_key`` and
    ``end`` is 0, and the last value is 0, too: nothing more would be learnt.
    """

    def __init__(self, schedule: Schedule, factor: Callable[[], float] = lambda: 1.0) -> None:
        self._schedule = schedule
        self._factor = factor
        self._line = schedule.line()
        self._name = f"{SCHEDULE}{schedule.name}"

    def __call__(self, step: float) -> float:
        """Return the number at a step."""
        return self._factor() * self._line.at(step)

    def slots(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors of a checkpoint by name."""
        line, schedule = self._line, self._schedule
        until = line.begin + line.steps
        values = [line.start, line.end, line.begin, until, schedule.begin, self._factor()]
        ends = [schedule.start, schedule.end]
        return {self._name: np.array(values), f"{self._name}/ends": np.array(ends)}

    def restore(self, slots: Mapping[str, npt.NDArray[Any]], step: int) -> None:
        """Go on at ``step`` from the tensors of a checkpoint, and log each change."""
        start, end, since, until, begin, factor = slots[self._name].tolist()
        before = Linear(start, end, until - since, since)
        schedule = self._schedule
        # The first line has the schedule's ends, also in checkpoints of before these were kept.
        first, last = (start, end) if since == begin else slots[f"{self._name}/ends"].tolist()
        is_other = (first, last) != (schedule.start, schedule.end)
        if begin != schedule.begin or is_other:
            self._line = schedule.line()
        elif schedule.until == until or schedule.until <= step:
            self._line = before
        else:
            self._require_rest(before.at(step), until, step)
            self._line = Linear(before.at(step), schedule.end, schedule.until - step, step)
        self._say(factor * before.at(step), step, until)
        if is_other:
            _log.warning(
                "the %s goes from %g to %g now, as the configuration says, and went from %g to %g",
                schedule.name, schedule.start, schedule.end, first, last,
            )  # fmt: skip

    def _require_rest(self, reached: float, until: float, step: int) -> None:
        schedule = self._schedule
        if schedule.begin_key is None or schedule.end or reached >= _ENDED * schedule.start:
            return
        raise ConfigurationError(
            f"{schedule.until_key} is {_shown(schedule.until)} and was {_shown(until)}, but the "
            f"{schedule.name} has fallen to {self._factor() * reached:g} at step {step:,}: nothing "
            f"more would be learnt. With {schedule.begin_key}: {step} in the algorithm section it "
            f"begins anew there, with {self._factor() * schedule.start:g}"
        )

    def _say(self, before: float, step: int, until: float) -> None:
        schedule, line, now = self._schedule, self._line, self(step)
        is_same = bool(np.isclose(now, before, rtol=1e-6, atol=0.0))
        if is_same and schedule.until == until:
            return
        last = line.begin + line.steps
        end = f"goes to {self._factor() * line.end:g} at step {last:,.0f}"
        _log.warning(
            "the %s at step %s %s and %s (%s: %s, and before %s)",
            schedule.name,
            f"{step:,}",
            f"goes on with {now:g}" if is_same else f"is {now:g}, and was {before:g},",
            end if isfinite(last) else "stays",
            schedule.until_key,
            _shown(schedule.until),
            _shown(until),
        )


def _shown(until: float) -> str:
    return f"{until:,.0f}" if isfinite(until) else "no end"


def exploration_slots(schedules: Mapping[str, Linear]) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a checkpoint that hold schedules of exploration, by name."""
    return {f"{SCHEDULE}{name}": np.array([*vars(s).values()]) for name, s in schedules.items()}


def require_no_more_exploration(
    schedules: Mapping[str, Linear], slots: Mapping[str, npt.NDArray[Any]], step: int
) -> None:
    """Raise ConfigurationError where actors would explore more at ``step`` than before.

    ``slots`` are those of a checkpoint. A schedule that has begun since is a new one on purpose.
    """
    for name, now in schedules.items():
        before = Linear(*slots[f"{SCHEDULE}{name}"].tolist())
        if now == before:
            continue
        was, is_now = before.at(step), now.at(step)
        if is_now > was and not before.begin < now.begin <= step:
            raise ConfigurationError(
                f"{name} would go up from {was:g} to {is_now:g} at step {step:,}, to which the "
                f"training has come: it is {_in_words(now)}, and was {_in_words(before)}. Write "
                "what it was; in the section exploration, begin says where a new schedule begins"
            )
        if is_now != was:
            _log.warning("%s was %g and is %g now, at step %d", name, was, is_now, step)


def _in_words(line: Linear) -> str:
    return f"{line.start:g} to {line.end:g} in {line.steps:,.0f} steps from {line.begin:,.0f} on"
