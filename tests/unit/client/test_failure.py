"""What a failure says of whether to try again."""

import pytest

from relaax.client import Failure
from relaax.protocol.binary import ErrorCode


@pytest.mark.parametrize("code", [None, ErrorCode.GO_ELSEWHERE, ErrorCode.SERVER])
def test_an_accident_is_worth_another_attempt(code):
    failure = Failure("lost", code)
    assert not failure.is_final
    assert not failure.is_refusal
    assert not failure.training_is_over


@pytest.mark.parametrize("code", [ErrorCode.PROTOCOL, ErrorCode.MISMATCH, ErrorCode.VERSION])
def test_a_refusal_is_final_but_another_episode_may_be_accepted(code):
    failure = Failure("too few numbers", code)
    assert failure.is_refusal
    assert failure.is_final
    assert not failure.ends_every_episode


def test_the_end_of_the_training_is_final_and_no_refusal():
    failure = Failure("it is over", ErrorCode.TRAINING_IS_OVER)
    assert failure.training_is_over
    assert failure.is_final
    assert failure.ends_every_episode
    assert not failure.is_refusal


def test_attempts_that_are_used_up_are_final_and_no_refusal():
    failure = Failure("gave up after 10 attempts", gave_up=True)
    assert failure.is_final
    assert not failure.is_refusal
    assert not failure.ends_every_episode
