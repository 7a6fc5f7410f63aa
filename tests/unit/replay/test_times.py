"""How long a replay takes, counted since it was made."""

import threading

import pytest

from relaax.replay.counts import Times


def test_calls_are_counted_and_their_seconds_added_up():
    moments = iter([0.0, 1.0, 5.0, 5.5, 6.0, 8.0])
    times = Times(lambda: next(moments))
    for name in ("insert", "insert", "sample"):
        with times.of(name):
            pass
    assert times.counts() == {
        "insert calls": 2, "insert seconds": 1.5, "sample calls": 1, "sample seconds": 2.0,
    }  # fmt: skip


def test_a_call_that_fails_is_not_counted():
    times = Times()

    with pytest.raises(ValueError, match="full"), times.of("insert"):
        raise ValueError("full")
    assert times.counts() == {}


def test_many_threads_may_count_at_once():
    times = Times()

    def count():
        for _ in range(500):
            with times.of("serialize"):
                pass

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert times.counts()["serialize calls"] == 2000
