"""Attempts that fail: counted, limited for their address, and logged now and then."""

import pytest
from clock import Clock

from relaax.access import RefusalLimit
from relaax.access.refusals import Refusals
from relaax.throttled_log import EVERY_S

ADDRESS = "192.0.2.1"


@pytest.fixture(name="clock")
def _clock():
    return Clock(0.0)


def wrong():
    return "it is wrong"


def right():
    return None


def never():
    raise AssertionError("the token was looked at")


def test_a_wrong_token_is_refused_with_its_reason_and_a_right_one_is_not(clock):
    refusals = Refusals(RefusalLimit(20, clock), clock)
    refused = refusals.check("RLX", ADDRESS, wrong)
    assert refused.reason == "it is wrong"
    assert not refused.is_over_limit
    assert refusals.check("RLX", ADDRESS, right) is None
    assert refusals.totals() == {"RLX": 1}


def test_over_the_limit_a_refusal_names_it_and_says_when_to_try_again(clock):
    refusals = Refusals(RefusalLimit(4, clock), clock)
    for port in ("RLX", "gRPC", "HTTP", "HTTP"):  # one budget for all ports
        assert refusals.check(port, ADDRESS, wrong).retry_after_s is None
    refused = refusals.check("gRPC", ADDRESS, never)
    assert refused.is_over_limit
    assert refused.retry_after_s == 15
    assert "4 wrong tokens within a minute (--max-refusals-per-address)" in refused.reason
    clock.now += 15
    assert refusals.check("gRPC", ADDRESS, right) is None
    assert refusals.totals() == {"RLX": 1, "gRPC": 2, "HTTP": 2}


def test_those_that_show_nothing_are_counted_and_use_up_no_budget(clock):
    refusals = Refusals(RefusalLimit(1, clock), clock)
    for _ in range(100):
        refusals.add("HTTP", ADDRESS, "no token")
    assert refusals.check("HTTP", ADDRESS, right) is None
    assert refusals.totals() == {"HTTP": 100}


def test_without_a_limit_every_token_is_looked_at(clock):
    refusals = Refusals(clock=clock)
    for _ in range(1000):
        assert not refusals.check("gRPC", ADDRESS, wrong).is_over_limit
    assert refusals.check("gRPC", ADDRESS, right) is None


def test_a_flood_is_one_line_in_ten_seconds(clock, caplog):
    refused = Refusals(clock=clock)
    for _ in range(50):
        refused.add("gRPC", ADDRESS, "no token")
    assert [record.getMessage() for record in caplog.records] == [
        "refused at the gRPC port, from 192.0.2.1: no token"
    ]
    clock.now += EVERY_S
    refused.add("gRPC", ADDRESS, "no token")
    assert caplog.records[-1].getMessage() == (
        "refused at the gRPC port, from 192.0.2.1: no token (50 times since the last such message)"
    )
