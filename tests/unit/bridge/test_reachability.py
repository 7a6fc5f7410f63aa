"""When it is looked why a server is not reached, and what of it is logged."""

import logging
import socket
from contextlib import closing

import pytest
from processes import free_port, wait_for

from relaax.bridge import Bridge, reachability
from relaax.bridge.reachability import Reachability
from relaax.errors import ParameterServerAway

REFUSED = "Connection refused"


@pytest.fixture(name="nowhere")
def _nowhere():
    return f"127.0.0.1:{free_port()}"


def said(caplog):
    return [each.getMessage() for each in caplog.records if "no connection" in each.getMessage()]


def test_the_cause_is_logged_once_however_often_a_call_fails(nowhere, monkeypatch, caplog):
    monkeypatch.setattr(reachability, "EVERY_S", 0.001)
    watched = Reachability(nowhere)
    looks = 0

    def look(*_):
        nonlocal looks
        looks += 1
        return REFUSED

    monkeypatch.setattr(reachability, "why_not_reached", look)
    monkeypatch.setattr(reachability, "NEW_AFTER", 1e9)
    wait_for(lambda: watched.look() or looks > 5, "some looks")
    wait_for(lambda: watched.cause == REFUSED, "a cause")
    assert said(caplog) == [f"no connection to {nowhere}: {REFUSED}"]


def test_the_cause_of_a_later_outage_is_logged_again(nowhere, monkeypatch, caplog):
    monkeypatch.setattr(reachability, "EVERY_S", 0.0)
    watched = Reachability(nowhere)
    wait_for(lambda: watched.look() or len(said(caplog)) > 1, "the cause, twice")


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
