"""Questions that wait are evaluated together, and each gets the answer that it gets alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from clock import Clock
from processes import wait_for

from relaax.algorithm_base.inference import Question, ServerTimes
from relaax.inference.batching import Batching


def same(answer, other):
    return (
        np.array_equal(answer.actions, other.actions)
        and answer.extras.keys() == other.extras.keys()
        and all(np.array_equal(answer.extras[name], other.extras[name]) for name in answer.extras)
        and np.array_equal(answer.recurrent_state, other.recurrent_state)
        and answer.version == other.version
    )


class Waiting:
    """A batching whose first evaluation lasts until all other questions wait."""

    def __init__(self, local, model, most_rows):
        self.counted, self.clock = [], Clock(100.0)
        self.batching = Batching(local, most_rows, self._count, self.clock)
        self._model, self._begun, self._goes_on = model, threading.Event(), threading.Event()

    def answers(self, first, others):
        self._model.while_evaluating = self._hold
        with ThreadPoolExecutor(1 + len(others)) as pool:
            answers = [pool.submit(self.batching.choose, first)]
            assert self._begun.wait(20)
            for number, each in enumerate(others, 1):
                answers.append(pool.submit(self.batching.choose, each))
                wait_for(lambda number=number: self.batching.waiting == number, "a question")
            self.clock.now += 3
            self._model.while_evaluating = self._take_half_a_second
            self._goes_on.set()
            return [answer.result(20) for answer in answers]

    def _hold(self):
        self._begun.set()
        assert self._goes_on.wait(20)

    def _take_half_a_second(self):
        self.clock.now += 0.5

    def _count(self, waits, environments, seconds):
        self.counted.append((list(waits), environments, seconds))


def test_questions_that_wait_are_evaluated_at_once_each_with_its_own_answer(local, model, ask):
    questions = [ask(count, seed=count) for count in (1, 2, 3, 4)]
    waiting = Waiting(local, model, most_rows=128)
    answers = waiting.answers(questions[0], questions[1:])
    assert model.rows == [1, 9]
    assert waiting.counted == [([0.0], 1, 3.0), ([3.0] * 3, 9, 0.5)]
    assert [answer.times for answer in answers] == [
        ServerTimes(queue=0.0, inference=3.0),
        *[ServerTimes(queue=3.0, inference=0.5)] * 3,
    ]
    assert all(map(same, answers, map(local.choose, questions)))


def test_no_more_environments_than_allowed_are_evaluated_at_once(local, model, ask):
    questions = [ask(count) for count in (1, 3, 3, 2)]
    Waiting(local, model, most_rows=5).answers(questions[0], questions[1:])
    assert model.rows == [1, 5, 3]


def test_a_question_of_more_than_that_is_evaluated_alone(local, model, ask):
    batching = Batching(local, most_rows=2)
    assert len(batching.choose(ask(7)).actions) == 7
    assert model.rows == [7]


def test_policies_are_kept_apart_and_each_answer_has_the_version_of_its_own(local, model, ask):
    questions = [ask(2), ask(1, 1, "first"), ask(2, 2, "second"), ask(4, 3, "first")]
    answers = Waiting(local, model, most_rows=128).answers(questions[0], questions[1:])
    assert model.rows == [2, 5, 2]
    assert [answer.version.number for answer in answers] == [0, 8, 11, 8]
    assert all(map(same, answers, map(local.choose, questions)))


def test_observations_of_other_types_are_kept_apart(local, model, ask):
    first = ask(1)
    bytes_ = Question("default", np.zeros((2, 2), np.uint8), *_rest(ask(2)))
    Waiting(local, model, most_rows=128).answers(first, [ask(2), bytes_])
    assert model.rows == [1, 2, 2]


def _rest(question):
    return question.recurrent_state, question.noise


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"observations": np.zeros((2, 3), np.float32)}, "observation of an environment has the "),
        ({"observations": {"speed": np.zeros((2, 2), np.float32)}}, "observation/speed"),
        ({"noise": np.zeros((2, 5), np.float32)}, "noise of an environment has the shape"),
        ({"recurrent_state": np.zeros((2, 2, 9), np.float32)}, "recurrent_state of an environment"),
        ({"observations": np.array([[1, np.inf]] * 2)}, "observation has a value that is not fini"),
        ({"noise": np.full((2, 2), np.nan, np.float32)}, "noise has a value that is not finite"),
        ({"observations": np.array([["a", "b"]] * 2)}, "observation of an environment"),
    ],
)
def test_a_question_of_another_form_is_refused_before_it_waits(local, model, ask, change, words):
    question = Question(**{**vars(ask(2)), **change})
    with pytest.raises(ValueError, match=words):
        Batching(local, 128).choose(question)
    assert model.rows == []


def test_an_error_is_that_of_each_question_and_later_ones_are_answered(local, model, ask):
    batching = Batching(local, 128)

    def fail():
        raise ArithmeticError("no number")

    model.while_evaluating = fail
    with pytest.raises(ArithmeticError):
        batching.choose(ask(2))
    model.while_evaluating = lambda: None
    assert same(batching.choose(ask(2)), local.choose(ask(2)))
