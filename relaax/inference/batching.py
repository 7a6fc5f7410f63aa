"""Gathers the questions that wait, and evaluates them at once."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.inference import (
    NOISE,
    OBSERVATION,
    RECURRENT_STATE,
    Answer,
    Answering,
    ArrayForm,
    Question,
    ServerTimes,
)
from relaax.inference.wire import observation_arrays
from relaax.observations import NUMBERS, joined, kind_of

Array: TypeAlias = npt.NDArray[Any]

_LARGEST = float(np.finfo(np.float32).max)

#: Called after each evaluation: how long each of its questions has waited, for how many
#: environments it was, and how long it has taken, in seconds.
Counter: TypeAlias = Callable[[Sequence[float], int, float], object]


@dataclass(eq=False)
class _Pending:
    """A question that waits."""

    question: Question
    came_at: float
    #: Or why there is none.
    answer: Answer | Exception | None = None

    @property
    def rows(self) -> int:
        return len(self.question.noise)


class Batching:
    """Answers the questions of many threads, as many at once as wait; nothing waits for more.

    While one evaluation goes on, further questions gather, and are the next one: those of a policy,
    and of a type of observations, with at most ``most_rows`` environments in all, or one that has
    more. ``on_evaluated`` counts. A question is checked before it waits, so that it can make no
    other one fail. Each answer says how long its question has waited, and was evaluated.
    """

    def __init__(
        self,
        answering: Answering,
        most_rows: int,
        on_evaluated: Counter = lambda waits, environments, seconds: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._answering = answering
        self._forms = answering.forms()
        self._most_rows = most_rows
        self._on_evaluated = on_evaluated
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[_Pending] = deque()
        self._is_evaluating = False

    def forms(self) -> Mapping[str, ArrayForm]:
        """See Answering."""
        return self._forms

    @property
    def waiting(self) -> int:
        """How many questions wait for the next evaluation."""
        return len(self._waiting)

    def choose(self, question: Question) -> Answer:
        """See Answering."""
        self._require_fitting(question)
        pending = _Pending(question, self._clock())
        with self._changed:
            self._waiting.append(pending)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: pending.answer or not self._is_evaluating)
                if pending.answer is not None:
                    break
                batch = self._next_batch()
                self._is_evaluating = True
            try:
                self._evaluate(batch)
            finally:
                with self._changed:
                    self._is_evaluating = False
                    self._changed.notify_all()
        if isinstance(pending.answer, Exception):
            raise pending.answer
        return pending.answer

    def _next_batch(self) -> list[_Pending]:
        """Return the questions that are evaluated with the first one that waits."""
        first = self._waiting.popleft()
        batch, rows, others = [first], first.rows, deque[_Pending]()
        kind = _kind_of(first.question)
        while self._waiting:
            each = self._waiting.popleft()
            if rows + each.rows <= self._most_rows and _kind_of(each.question) == kind:
                batch.append(each)
                rows += each.rows
            else:
                others.append(each)
        self._waiting = others
        return batch

    def _evaluate(self, batch: Sequence[_Pending]) -> None:
        questions, began = [each.question for each in batch], self._clock()
        try:
            answer = self._answering.choose(_together(questions))
            answers = _split(answer, [each.rows for each in batch])
        except Exception as error:  # whatever a network raises: each question's thread raises it
            for each in batch:
                each.answer = error
            return
        seconds, waits = self._clock() - began, [began - each.came_at for each in batch]
        for each, part, wait in zip(batch, answers, waits, strict=True):
            each.answer = replace(part, times=ServerTimes(wait, seconds))
        self._on_evaluated(waits, sum(each.rows for each in batch), seconds)

    def _require_fitting(self, question: Question) -> None:
        """Raise ValueError, which names the array, for one of another shape."""
        arrays = observation_arrays(question.observations)
        expected = {name for name in self._forms if name.partition("/")[0] == OBSERVATION}
        if arrays.keys() != expected:
            raise ValueError(f"observations are {sorted(expected)}, and {sorted(arrays)} came")
        for name, array in {**arrays, NOISE: question.noise}.items():
            self._require_form(name, array, array.shape[1:])
        state = question.recurrent_state
        self._require_form(RECURRENT_STATE, state, state.shape[2:])
        if len(question.noise) == 0:
            raise ValueError("a question is of one environment or more")

    def _require_form(self, name: str, array: Array, shape: tuple[int, ...]) -> None:
        expected = self._forms[name].shape
        if shape != expected or array.dtype.kind not in NUMBERS:
            raise ValueError(
                f"{name} of an environment has the shape {expected}; {array.dtype} {shape} came"
            )
        if array.dtype.kind == "f" and not (np.abs(array) <= _LARGEST).all():
            raise ValueError(f"{name} has a value that is not finite in float32")


def _kind_of(question: Question) -> Any:
    """Return the property that questions of one evaluation share."""
    return question.policy, kind_of(question.observations)


def _together(questions: Sequence[Question]) -> Question:
    """Return the questions as one."""
    if len(questions) == 1:
        return questions[0]
    return Question(
        questions[0].policy,
        joined([each.observations for each in questions]),
        np.concatenate([each.recurrent_state for each in questions], axis=1),
        np.concatenate([each.noise for each in questions]),
    )


def _split(answer: Answer, counts: Sequence[int]) -> list[Answer]:
    """Return the answer's parts, of ``counts`` environments each."""
    if len(counts) == 1:
        return [answer]
    parts, begin = [], 0
    for count in counts:
        rows = slice(begin, begin + count)
        parts.append(
            Answer(
                answer.actions[rows],
                {name: extra[rows] for name, extra in answer.extras.items()},
                answer.recurrent_state[:, rows],
                answer.version,
                answer.global_t,
            )
        )
        begin += count
    return parts
