"""Questions and answers as bytes, there and back."""

import numpy as np
import pytest

from relaax.algorithm_base import DEFAULT, Version
from relaax.algorithm_base.inference import Answer, ArrayForm, Question, ServerTimes
from relaax.inference.wire import (
    ANSWERS,
    QUESTIONS,
    answer_message,
    answer_of,
    description_of,
    forms_digest,
    forms_of,
    question_message,
    question_of,
)

FORMS = {
    "observation/camera": ArrayForm(np.dtype(np.uint8), (4, 4)),
    "action": ArrayForm(np.dtype(np.int32), ()),
}
STATE = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
NOISE = np.arange(3, dtype=np.float32)


def sent(question):
    return question_of(QUESTIONS.decode(QUESTIONS.encode(question_message(question, 1))))


@pytest.mark.parametrize("policy", [DEFAULT, "opponent/3"])
@pytest.mark.parametrize(
    "observations",
    [
        np.arange(6, dtype=">f8").reshape(3, 2),
        {"camera": np.zeros((3, 4, 4), np.uint8), "speed": np.arange(3, dtype=np.float32)},
        np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
    ],
    ids=["big-endian", "named", "with gaps"],
)
def test_a_question_comes_as_it_was_sent(policy, observations):
    came = sent(Question(policy, observations, STATE, NOISE))
    assert came.policy == policy
    np.testing.assert_equal(came.observations, observations)
    np.testing.assert_equal(came.recurrent_state, STATE)
    np.testing.assert_equal(came.noise, NOISE)


def test_an_answer_comes_as_it_was_sent_with_its_version():
    answer = Answer(
        np.array([1, 0, 1], np.int32),
        {"log_probability": NOISE, "value": np.ones((3, 1), np.float32)},
        np.zeros((2, 3, 0), np.float32),
        Version(17, incarnation=2**63),
        global_t=2**40,
        times=ServerTimes(queue=0.25, inference=0.5),
    )
    came = answer_of(ANSWERS.decode(ANSWERS.encode(answer_message(answer))))
    assert (came.version, came.global_t) == (answer.version, answer.global_t)
    assert came.times == answer.times
    np.testing.assert_equal(came.actions, answer.actions)
    np.testing.assert_equal(dict(came.extras), dict(answer.extras))
    assert came.recurrent_state.shape == (2, 3, 0)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ((np.zeros((2, 2), np.float32), STATE, NOISE), "arrays of a message are of"),
        ((np.zeros((3, 2), np.float32), STATE[0], NOISE), r"a recurrent state is \[2, B, H\]"),
        ((np.zeros((3, 2), np.float32), STATE, np.float32(1)), "arrays of a message are of"),
    ],
)
def test_arrays_of_other_numbers_of_environments_are_refused(arrays, words):
    with pytest.raises(ValueError, match=words):
        sent(Question(DEFAULT, *arrays))


def test_a_message_without_noise_is_refused():
    message = question_message(Question(DEFAULT, NOISE, STATE, NOISE), 1)
    message.fields.arrays[-1].name = "noises"
    with pytest.raises(ValueError, match="a message has no array 'noise'"):
        question_of(QUESTIONS.decode(QUESTIONS.encode(message)))


def test_forms_come_as_they_were_sent_and_have_the_same_digest_in_any_order():
    came = forms_of(description_of(FORMS))
    assert came == FORMS
    assert forms_digest(came) == forms_digest(dict(reversed(FORMS.items())))


@pytest.mark.parametrize(
    "changed", [ArrayForm(np.dtype(np.int64), ()), ArrayForm(np.dtype(np.int32), (1,))]
)
def test_other_forms_have_another_digest(changed):
    assert forms_digest({**FORMS, "action": changed}) != forms_digest(FORMS)
