"""A traceback is logged once for each line of code that raises, and for each way to it."""

import logging

import pytest

from relaax.telemetry.throttled_log import FailureLog, in_words


def fail(error, place):
    if place == "here":
        raise error
    raise error


@pytest.fixture(name="log")
def _log(caplog):
    """A function that logs an error from a place, and returns how many tracebacks there are."""
    failures = FailureLog(logging.getLogger(__name__))

    def log(error, place="here"):
        try:
            fail(error, place)
        except Exception as raised:
            failures.add("a call", raised)
        return caplog.text.count("Traceback")

    return log


def test_a_failure_that_repeats_itself_is_one_traceback_and_a_line_each_time(log, caplog):
    assert [log(ValueError(text)) for text in ("first", "second", "third")] == [1, 1, 1]
    assert "a call failed again: ValueError: third" in caplog.text


def test_another_type_and_another_place_are_failures_of_their_own(log):
    errors = [(ValueError(), "here"), (KeyError(), "here"), (ValueError(), "there")]
    assert [log(*error) for error in errors] == [1, 2, 3]


def in_a_library(text):
    return int(text)


def one_mistake():
    in_a_library("one")


def another_mistake():
    in_a_library("two")


def test_two_mistakes_that_end_in_one_line_of_a_library_are_two_failures(caplog):
    failures = FailureLog(logging.getLogger(__name__))
    for mistake in (one_mistake, another_mistake) * 2:
        try:
            mistake()
        except ValueError as error:
            failures.add("a call", error)
    assert caplog.text.count("Traceback") == 2
    assert caplog.text.count("a call failed again") == 2


def test_an_error_that_is_kept_and_raised_again_is_the_same_failure(log):
    kept = ValueError("kept")
    assert [log(kept) for _ in range(3)] == [1, 1, 1]


def test_an_error_without_a_message_is_its_type():
    assert in_words(MemoryError()) == "MemoryError"
    assert in_words(ValueError("too small")) == "ValueError: too small"
