"""Rates are means of the last seconds."""

import pytest

from relaax.replay.times import Rates


def test_a_rate_is_the_growth_since_the_window_began():
    rates = Rates(10.0)
    assert rates.of({"steps": 0}, 0.0) == {}
    assert rates.of({"steps": 50}, 5.0) == {"steps per second": 10.0}
    assert rates.of({"steps": 150}, 10.0) == {"steps per second": 15.0}
    assert rates.of({"steps": 150}, 15.0) == {"steps per second": 10.0}
    assert rates.of({"steps": 150}, 20.0) == {"steps per second": 0.0}


def test_questions_one_after_the_other_have_the_same_answer():
    rates = Rates(10.0)
    rates.of({"steps": 0}, 0.0)
    for moment in (1.0, 1.1, 1.2):
        rate = rates.of({"steps": 30 * moment}, moment)["steps per second"]
        assert rate == pytest.approx(30.0)
