"""Attempts that fail: counted, slowed down for their address, and logged now and then."""

import pytest

from relaax.access import refusals
from relaax.access.refusals import MEMORY_S, MOST_S, STEP_S, Refusals
from relaax.throttled_log import EVERY_S


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(name="clock")
def _clock():
    return Clock()


def test_each_attempt_of_an_address_is_answered_later_up_to_a_limit(clock):
    refused = Refusals(clock)
    delays = [refused.add("gRPC", "192.0.2.1", "no token") for _ in range(100)]
    assert delays[:4] == pytest.approx([0.0, STEP_S, 2 * STEP_S, 3 * STEP_S])
    assert delays[-1] == MOST_S
    assert refused.add("gRPC", "192.0.2.2", "no token") == 0
    assert refused.totals() == {"gRPC": 101}


def test_an_address_that_has_not_failed_for_long_begins_anew(clock):
    refused = Refusals(clock)
    for _ in range(5):
        refused.add("gRPC", "192.0.2.1", "no token")
    clock.now += MEMORY_S + 1
    assert refused.add("gRPC", "192.0.2.1", "no token") == 0


def test_only_so_many_addresses_are_remembered(clock, monkeypatch):
    monkeypatch.setattr(refusals, "MOST_ADDRESSES", 10)
    refused = Refusals(clock)
    for number in range(1000):
        refused.add("gRPC", f"192.0.2.{number}", "no token")
        assert len(refused._failed) <= 10
    assert refused.totals() == {"gRPC": 1000}


def test_a_flood_is_one_line_in_ten_seconds(clock, caplog):
    refused = Refusals(clock)
    for _ in range(50):
        refused.add("gRPC", "192.0.2.1", "no token")
    assert [record.getMessage() for record in caplog.records] == [
        "refused at the gRPC port, from 192.0.2.1: no token"
    ]
    clock.now += EVERY_S
    refused.add("gRPC", "192.0.2.1", "no token")
    assert caplog.records[-1].getMessage() == (
        "refused at the gRPC port, from 192.0.2.1: no token (50 times since the last such message)"
    )
