"""When it is looked why a server is not reached, and what of it is logged."""

import logging
import socket
import threading
from contextlib import closing

import pytest
from clock import Clock
from processes import free_port, wait_for

from relaax.errors import ParameterServerAway
from relaax.net import reachability
from relaax.net.reachability import EVERY_S, NEW_AFTER_S, Reachability
from relaax.parameters import Bridge

REFUSED = "Connection refused"


@pytest.fixture(name="nowhere")
def _nowhere():
    return f"127.0.0.1:{free_port()}"


def said(caplog):
    return [each.getMessage() for each in caplog.records if "no connection" in each.getMessage()]


class Looks:
    """Looks at a server that a test lets be there or not, by the test's own clock."""

    def __init__(self, url, monkeypatch, patience_s=0.0):
        self.clock, self.found, self.number = Clock(), REFUSED, 0
        monkeypatch.setattr(reachability, "why_not_reached", self._why)
        self.watched = Reachability(url, patience_s, clock=self.clock)

    def _why(self, *_):
        self.number += 1
        return self.found

    def fails(self, after_s, looks=1):
        """Let a call fail; ``looks`` is how often it is looked because of that."""
        before, self.clock.now = self.number, self.clock.now + after_s
        self.watched.look()
        wait_for(lambda: not threads("reachability"), "the end of the look")
        assert self.number - before == looks


def threads(name):
    return [each for each in threading.enumerate() if each.name == name]


def test_the_cause_is_logged_once_in_an_outage_however_often_it_is_looked(monkeypatch, caplog):
    looks = Looks("there:1", monkeypatch)
    for _ in range(5):
        looks.fails(after_s=EVERY_S)
    assert said(caplog) == [f"no connection to there:1: {REFUSED}"]
    assert looks.watched.cause == REFUSED


def test_the_cause_of_a_later_outage_is_logged_again(monkeypatch, caplog):
    looks = Looks("there:1", monkeypatch)
    looks.fails(after_s=0)
    looks.fails(after_s=NEW_AFTER_S + 1)
    assert said(caplog) == [f"no connection to there:1: {REFUSED}"] * 2


def test_a_cause_that_is_gone_is_forgotten(monkeypatch, caplog):
    looks = Looks("there:1", monkeypatch)
    looks.fails(after_s=0)
    looks.found = None
    looks.fails(after_s=EVERY_S)
    assert looks.watched.cause is None


def test_a_server_that_starts_a_moment_later_is_not_looked_at(monkeypatch, caplog):
    looks = Looks("there:1", monkeypatch, patience_s=2.0)
    looks.fails(after_s=0, looks=0)
    looks.fails(after_s=1.5, looks=0)
    looks.fails(after_s=1.0)
    looks.fails(after_s=NEW_AFTER_S + 1, looks=0)
    assert said(caplog) == [f"no connection to there:1: {REFUSED}"]


def test_it_is_not_looked_again_at_once(nowhere, caplog):
    host, _, port = nowhere.rpartition(":")
    watched = Reachability(nowhere)
    watched.look()
    wait_for(lambda: watched.cause == REFUSED, "a cause")
    with closing(socket.create_server((host, int(port)))) as listener:
        listener.setblocking(False)
        for _ in range(100):
            watched.look()
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_path_is_not_looked_at(caplog):
    watched = Reachability("unix:/nowhere/at.all")
    watched.look()
    assert watched.cause is None


def test_a_call_that_waits_says_why(nowhere, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    with closing(Bridge(nowhere, call_timeout_s=0.2, retry_for_s=1.0)) as bridge:
        with pytest.raises(ParameterServerAway):
            bridge.get_values()
        wait_for(lambda: said(caplog) == [f"no connection to {nowhere}: {REFUSED}"], "the cause")
    assert f"waiting for parameter server {nowhere} ({REFUSED})" in caplog.messages
