"""What is tried again and again is logged when it says something new."""

import logging

import pytest
from clock import Clock

from relaax.telemetry.throttled_log import RepeatedWarning


@pytest.fixture(name="clock")
def _clock():
    return Clock()


def said(caplog):
    texts = caplog.messages[:]
    caplog.clear()
    return texts


def test_the_same_is_said_once_and_anything_else_at_once(caplog):
    warning = RepeatedWarning(logging.getLogger("a"))
    for text in ("away", "away", "refused", "away"):
        warning.say(text)
    assert said(caplog) == ["away", "refused", "away"]


def test_it_is_logged_again_after_a_recovery(caplog):
    warning = RepeatedWarning(logging.getLogger("a"))
    warning.say("away")
    warning.forget()
    warning.say("away")
    assert said(caplog) == ["away", "away"]


def test_it_is_said_again_now_and_then(caplog, clock):
    warning = RepeatedWarning(logging.getLogger("a"), every_s=60.0, clock=clock)
    for _ in range(13):
        warning.say("away")
        clock.now += 10.0
    assert said(caplog) == ["away"] * 3


def test_a_text_is_no_format(caplog):
    RepeatedWarning(logging.getLogger("a")).say("100 %s")
    assert said(caplog) == ["100 %s"]
