"""A worker in its client's process: each message is answered before ``send`` returns."""

import logging
from contextlib import closing

import numpy as np
import pytest
from served_worker import Oracle, Stub, settings

from relaax.client import Client, Failure
from relaax.server.rlx_server.worker import measurements
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.memory_worker import MemoryWorker


class Played:
    """A worker, its agent, and whether the training is over."""

    def __init__(self):
        self.oracle, self.is_over, self.seen = Oracle(), False, []
        self.stub = Stub()
        agents = Agents(self.oracle, self.stub, act_together=True)
        self.worker = MemoryWorker(
            settings(), lambda: agents, lambda: self.is_over, before=self.seen.append
        )

    def client(self, **options):
        return Client("localhost:1", transport=self.worker, **options)


@pytest.fixture(name="played")
def _played():
    played = Played()
    with closing(played.worker):
        yield played


def state(number):
    return np.array([number], np.float32)


@pytest.mark.parametrize("protocol", [1, 2])
def test_both_versions_are_answered(played, protocol):
    with played.client(protocol=protocol) as client:
        assert client.init(state(7)).tolist() == [0, 7]
        assert client.send(1.0, state(8)).tolist() == [0, 8]
        assert client.reset(2.0) == 3.0


def test_steps_are_shown_before_they_are_answered(played):
    with played.client() as client:
        client.init(state(7))
        client.send(1.0, state(8))
    assert [bool(steps.starts[0]) for steps in played.seen] == [True, False]


def test_a_client_is_told_at_its_next_message_that_the_training_is_over(played, caplog):
    with played.client() as client, caplog.at_level(logging.WARNING):
        client.init(state(7))
        played.is_over = True
        with pytest.raises(Failure) as failed:
            client.send(1.0, state(8))
        assert failed.value.training_is_over
    assert caplog.messages == []


def test_a_client_that_comes_later_is_told_so_at_its_hello(played):
    played.is_over = True
    with played.client() as client, pytest.raises(Failure) as failed:
        client.init(state(7))
    assert failed.value.training_is_over


def test_its_environments_are_counted_for_the_metrics(played, monkeypatch):
    monkeypatch.setattr(measurements, "INTERVAL_S", 0.0)
    with played.client() as client:
        client.init(state(7))
    named = [
        (name.split(" of ")[0], y) for name, y, _ in played.stub.stored.values if " of " in name
    ]
    assert named[:2] == [("server/environments", 1), ("server/connections", 1)]


def test_an_error_of_one_client_ends_its_connection_alone(played):
    with played.client() as good, played.client() as bad:
        good.init(state(1))
        with pytest.raises(Failure, match="a state has shape"):
            bad.init(np.zeros(2, np.float32))
        assert good.send(1.0, state(2)).tolist() == [0, 2]


def test_an_exception_of_the_agent_is_raised_where_the_client_sends(played):
    played.oracle.act = lambda *_: 1 / 0
    with played.client() as client, pytest.raises(ZeroDivisionError):
        client.init(state(7))
