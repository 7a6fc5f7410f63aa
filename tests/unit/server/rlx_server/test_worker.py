"""A worker with a client of version 1, over a real socket pair, with an agent an environment."""

import logging

import numpy as np
import pytest
from json_requests import Act, RewardAndAct, RewardAndReset, encode_request
from processes import wait_for
from served_worker import JsonClient

from relaax.algorithm_base import AgentBase, InvalidState
from relaax.protocol.binary import Metric
from relaax.telemetry.throttled_log import AT_ONCE


class EchoAgent(AgentBase):
    """Answers with the state; a negative state is invalid."""

    def __init__(self):
        self.score = 0.0

    def act(self, state):
        self.score = 0.0
        return self._echo(state)

    def reward_and_act(self, reward, state):
        self.score += reward
        return self._echo(state)

    def reward_and_reset(self, reward):
        return self.score + reward

    def _echo(self, state):
        if np.any(np.asarray(state) < 0):
            raise InvalidState("a state is negative")
        return state


@pytest.fixture(name="session")
def _session(serve_separately):
    def open_session(**options):
        return Session(serve_separately(lambda number: EchoAgent(), runs=True, **options))

    return open_session


def session_of(talk):
    """Another client of the same worker."""
    return Session(talk.served)


class Session:
    """A client, and the worker that serves it."""

    def __init__(self, served):
        self.served = served
        self.client = JsonClient(served)
        self.stored = served.stored

    def tell(self, message):
        self.client.tell(message)

    def act(self, message):
        self.client.tell(message)
        return self.client.action()

    def reset(self, reward):
        self.client.tell(RewardAndReset(reward))
        return self.client.score()

    def is_closed_after(self, message):
        self.client.tell(message)
        return self.client.receive() is None


def test_an_episode_is_answered_message_by_message(session):
    talk = session()
    assert talk.act(Act(1)) == 1
    assert talk.act(RewardAndAct(0.5, [1.5, 2])) == [1.5, 2]
    array = np.array([0.5, 0.25], np.float32)
    np.testing.assert_array_equal(talk.act(RewardAndAct(0.25, array)), array)
    assert talk.reset(2.0) == 2.75


def test_every_episode_leaves_its_metrics(session):
    talk = session()
    talk.act(Act(1))
    talk.act(RewardAndAct(1.0, 2))
    talk.reset(2.0)
    talk.act(Act(1))
    talk.reset(10.0)
    talk.served.end()
    assert talk.stored.of("episode/reward") == [3.0, 10.0]
    assert talk.stored.of("episode/length") == [1.5]  # the mean of what came within a second
    for name in ("episode/time", "episode/reward per time", "inference/act latency"):
        (value,) = talk.stored.of(name)
        assert value > 0, name


def test_act_in_the_middle_of_an_episode_ends_it(session):
    talk = session()
    talk.act(Act(1))
    talk.act(RewardAndAct(4.0, 2))
    talk.act(Act(1))
    talk.served.end()
    assert talk.stored.of("episode/reward") == [4.0]


def test_metrics_of_the_client_are_stored_under_its_prefix_and_not_answered(session):
    talk = session()
    talk.tell(Metric("act latency", 0.125, None))
    talk.tell(Metric("speed", 3.0, 7.0))
    talk.tell(Metric("episode/reward", 1e6))
    assert talk.act(Act(5)) == 5
    assert talk.stored.values == [
        ("client/act latency", 0.125, None),
        ("client/speed", 3.0, 7.0),
        ("client/episode/reward", 1e6, None),
    ]


@pytest.mark.parametrize("message", [RewardAndAct(1.0, 2), RewardAndReset(1.0)])
def test_a_reward_outside_of_an_episode_breaks_the_protocol(session, message, caplog):
    assert session().is_closed_after(message)
    assert "no episode is going on in environment 0" in caplog.text


def test_a_state_that_the_agent_refuses_closes_the_connection_with_its_reason(session, caplog):
    assert session().is_closed_after(Act(-1))
    assert "closing the connection from a test: a state is negative" in caplog.text


@pytest.mark.parametrize("payload", [b"[", b'["jump", 1]', b'["act", 1]', b"\x03"])
def test_a_message_that_is_no_request_closes_the_connection(session, payload, caplog):
    talk = session()
    talk.client.connection.send(payload)
    assert talk.client.receive() is None
    assert "closing the connection from a test: " in caplog.text


def test_the_connection_is_closed_at_the_first_end_of_an_episode_after_the_timeout(session):
    talk = session(timeout_s=0.0)
    assert talk.act(Act(1)) == 1
    assert talk.act(RewardAndAct(1.0, 2)) == 2
    assert talk.reset(1.0) == 2.0
    assert talk.client.receive() is None


def test_a_cut_off_episode_is_an_end_for_the_timeout_too(session):
    talk = session(timeout_s=0.0)
    talk.act(Act(1))
    talk.act(RewardAndAct(1.0, 2))
    assert talk.is_closed_after(Act(1))
    assert talk.stored.of("episode/reward") == [1.0]


def test_a_reward_that_no_algorithm_can_store_breaks_the_protocol(session, caplog):
    talk = session()
    talk.act(Act(1))
    assert talk.is_closed_after(RewardAndAct(1e39, 2))
    assert "is 1e+39, not finite as a 32-bit float" in caplog.text


def test_a_client_that_leaves_between_two_messages_is_no_warning(session, caplog):
    talk = session()
    talk.act(Act(1))
    talk.client.close()
    other = JsonClient(talk.served)
    other.tell(Act(2))
    assert other.action() == 2
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (float("nan"), "returned the action nan, which is not finite"),
        (object(), "the algorithm of this server returned an unusable action: act cannot be sent"),
        (None, "the algorithm of this server returned None"),
    ],
)
def test_an_action_that_cannot_be_sent_closes_its_connection_alone(
    serve_separately, action, reason, caplog
):
    class Confused(EchoAgent):
        def act(self, state):
            return action if state == 1 else state

    served = serve_separately(lambda number: Confused(), runs=True)
    bad, good = JsonClient(served), JsonClient(served)
    bad.tell(Act(1))
    assert bad.receive() is None
    assert reason in caplog.text
    good.tell(Act(2))
    assert good.action() == 2


@pytest.mark.usefixtures("log_clock")
def test_a_flood_of_clients_that_break_a_rule_is_a_few_lines_of_each_kind(session, caplog):
    caplog.set_level(logging.INFO)
    talk = session()
    for number in range(3 * AT_ONCE):
        assert session_of(talk).is_closed_after(Act(-1))
        client = session_of(talk).client
        client.connection.send(b'["jump", %d]' % number)
        assert client.receive() is None
    assert talk.act(Act(1)) == 1
    for kind in ("a state is negative", "jump"):
        assert AT_ONCE <= caplog.text.count(kind) < AT_ONCE + 5, kind


@pytest.mark.usefixtures("log_clock")
def test_a_flood_of_lost_connections_is_a_few_lines(session, caplog):
    caplog.set_level(logging.INFO)
    talk = session()
    for _ in range(3 * AT_ONCE):
        client = session_of(talk).client
        client.connection.send(encode_request(Act(1)))
        assert client.receive() is not None
        client.connection.sock.sendall(b"\x05\0\0\0a")  # and no more
        client.close()
    talk.client.close()
    wait_for(lambda: talk.served.load == 0, "the end of all connections")
    said = caplog.text.count("bytes before the end of a frame")
    assert AT_ONCE <= said < AT_ONCE + 5
