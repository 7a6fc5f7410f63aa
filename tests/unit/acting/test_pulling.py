"""Actors get what is published, and go on with what they have while nothing answers."""

import threading

import numpy as np
import pytest
from processes import wait_for

from relaax.acting.pulling import PullingSink
from relaax.algorithm_base import Values, Version
from relaax.errors import BridgeError


class Source:
    def __init__(self):
        self.values = Values(Version(1), 0, np.zeros(2, np.float32))
        self.asked = []
        self.is_away = False
        self.was_asked = threading.Semaphore(0)

    def pull(self, known=None, policy="default"):
        self.asked.append(known)
        self.was_asked.release()
        if self.is_away:
            raise BridgeError("away")
        return self.values


class Kept:
    def __init__(self):
        self.published, self.put_in, self.closed = [], [], False

    def publish(self, values):
        self.published.append(values.version.number)

    def warm_up(self):
        pass

    def put(self, rollouts):
        self.put_in.append(rollouts)

    def close(self):
        self.closed = True


def asked(source, times):
    for _ in range(times):
        assert source.was_asked.acquire(timeout=5)


def test_what_is_published_replaces_the_policy():
    source, kept = Source(), Kept()
    sink = PullingSink(kept, source, kept, interval_s=0.001)
    asked(source, 2)
    source.values = Values(Version(2), 5, np.ones(2, np.float32))
    wait_for(lambda: source.asked[-1] == Version(2), "a question for what is newer")
    sink.close()
    assert kept.published[0] == 1
    assert kept.published[-1] == 2
    assert source.asked[0] is None


def test_while_the_source_is_away_nothing_is_replaced(caplog):
    source, kept = Source(), Kept()
    source.is_away = True
    sink = PullingSink(kept, source, kept, interval_s=0.001)
    asked(source, 3)
    assert kept.published == []
    source.is_away = False
    asked(source, 3)
    sink.close()
    assert kept.published
    assert caplog.text.count("acting with the parameters before: away") == 1  # not once a call


def test_values_that_do_not_fit_replace_nothing_and_pulling_goes_on(caplog):
    class Choosy(Kept):
        def publish(self, values):
            if values.version.number == 1:
                raise ValueError("2 numbers do not fit")
            super().publish(values)

    source, kept = Source(), Choosy()
    sink = PullingSink(kept, source, kept, interval_s=0.001)
    asked(source, 3)
    source.values = Values(Version(2), 5, np.ones(2, np.float32))
    asked(source, 3)
    sink.put("steps")
    sink.close()
    assert kept.published[0] == 2
    assert caplog.text.count("acting with the parameters before: 2 numbers do not fit") == 1


def test_a_mistake_in_the_request_ends_acting_with_its_reason(caplog):
    class Wrong(Source):
        def pull(self, known=None, policy="default"):
            super().pull(known, policy)
            raise ValueError("there is no policy 'rival'")

    source, kept = Wrong(), Kept()
    sink = PullingSink(kept, source, kept, interval_s=0.001)
    wait_for(lambda: "asked for no longer: there is no policy 'rival'" in caplog.text, "the end")
    with pytest.raises(ValueError, match="there is no policy 'rival'"):
        sink.put("steps")
    sink.close()
    assert (len(source.asked), kept.put_in) == (1, [])


def test_experience_is_handed_on():
    source, kept = Source(), Kept()
    sink = PullingSink(kept, source, kept, interval_s=10)
    sink.put("steps")
    sink.close()
    assert kept.put_in == ["steps"]
    assert kept.closed


class Counted:
    def __init__(self):
        self.events = []
        self.was_updated = threading.Event()

    def acted(self, rollouts):
        self.events.append(rollouts)

    def updated(self, age_s):
        self.events.append(age_s)
        self.was_updated.set()


def test_what_is_done_with_the_parameters_is_counted_and_how_old_new_ones_are():
    source, kept, use = Source(), Kept(), Counted()
    sink = PullingSink(kept, source, kept, interval_s=0.001, use=use)
    sink.put("steps")
    asked(source, 3)
    assert use.events == ["steps"]  # those that were there from the beginning are no update
    source.values = Values(Version(2), 5, np.ones(2, np.float32), age_s=0.25)
    assert use.was_updated.wait(5)
    sink.close()
    assert use.events == ["steps", 0.25]
    assert kept.put_in == ["steps"]


def test_a_feed_is_not_asked_but_hands_on_what_is_new():
    class Feed(Source):
        def subscribe(self, sink):
            self.sink = sink

    source, kept = Feed(), Kept()
    sink = PullingSink(kept, source, kept, interval_s=0.001)
    source.sink.publish(Values(Version(7), 0, np.ones(2, np.float32)))
    sink.close()
    assert kept.published == [7]
    assert source.asked == []
