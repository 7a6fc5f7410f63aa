"""Fetching parameters never holds an actor up for long."""

import threading
from contextlib import closing

import pytest
from actor_parts import Served
from processes import wait_for

from relaax.acting.parameter_client import ClockTracker, ParameterClient, PullRule
from relaax.errors import BridgeError, ParameterServerAway


class Silent(Served):
    """A parameter server that answers when it is let."""

    def __init__(self):
        super().__init__()
        self.may_answer = threading.Event()

    def pull(self, known=None, policy="default"):
        assert self.may_answer.wait(10)
        return super().pull(known, policy)


class Failing(Served):
    error: Exception | None = None

    def pull(self, known=None, policy="default"):
        if self.error is not None:
            raise self.error
        return super().pull(known, policy)


def test_parameters_that_are_known_are_not_sent_again():
    served = Served()
    served.publish(5.0, 1)
    with closing(ParameterClient(served)) as client:
        first = client.fetch_parameter_with_info()
        again = client.fetch_parameter_with_info()
    assert first.vector.tolist() == [5.0]
    assert (again.vector, again.info.iteration) == (None, 1)
    assert served.asked == [None, first.version]


def test_a_parameter_server_that_does_not_answer_counts_as_nothing(caplog):
    served = Silent()
    with closing(ParameterClient(served, timeout_s=0.01)) as client:
        assert client.fetch_parameter_with_info() is None
        assert client.alive is False
        assert "acting with the parameters before" in caplog.text
        served.may_answer.set()


def test_while_an_answer_is_outstanding_no_fetch_waits_and_none_is_sent():
    served = Silent()
    with closing(ParameterClient(served, timeout_s=0.01)) as client:
        client.fetch_parameter_with_info()
        client.timeout_s = 3600.0  # a fetch that waited would not end
        assert [client.fetch_parameter_with_info() for _ in range(3)] == [None] * 3
        assert served.asked == []
        served.may_answer.set()


def test_an_answer_that_comes_late_is_used_by_a_later_fetch():
    served = Silent()
    served.publish(5.0, 1)
    with closing(ParameterClient(served, timeout_s=0.01)) as client:
        client.fetch_parameter_with_info()
        served.may_answer.set()
        found = wait_for(client.fetch_parameter_with_info, "the late answer", 10)
        assert found.vector.tolist() == [5.0]
        assert client.alive
        assert served.asked == [None]


def test_parameters_that_came_with_the_information_alone_are_the_next_ones_and_sent_once():
    served = Served()
    served.publish(5.0, 1)
    with closing(ParameterClient(served)) as client:
        assert [client.fetch_info().iteration for _ in range(2)] == [1, 1]
        assert client.fetch_parameter_with_info().vector.tolist() == [5.0]
        assert client.fetch_parameter_with_info().vector is None
        assert served.asked == [None, *[served.pull().version] * 3, None]
        served.publish(6.0, 2)
        assert client.fetch_info().iteration == 2
        served.publish(7.0, 3)
        assert client.fetch_parameter_with_info().vector.tolist() == [7.0]


@pytest.mark.parametrize("error", [ParameterServerAway("away"), BridgeError("no"), ValueError("x")])
def test_a_fetch_that_fails_counts_as_nothing_and_the_next_one_is_sent(error, caplog):
    served = Failing()
    served.publish(5.0, 1)
    with closing(ParameterClient(served)) as client:
        served.error = error
        assert client.fetch_parameter_with_info() is None
        assert client.fetch_parameter_with_info() is None
        assert caplog.text.count("acting with the parameters before") == 1
        served.error = None
        assert client.fetch_parameter_with_info().vector is not None
        assert "answers again" in caplog.text


def test_a_rule_of_seconds_counts_from_the_last_fetch():
    now = [100.0]
    tracker = ClockTracker(5, clock=lambda: now[0])
    found = []
    for now[0] in (101.0, 105.0, 106.0, 109.9, 110.0, 130.0, 134.0):
        found.append(tracker.track_increment())
    assert found == [False, True, False, False, True, True, False]
    assert isinstance(PullRule("second", 5).tracker(), ClockTracker)
