"""The message loop, over a real socket pair, with a small agent."""

import socket
import threading

import numpy as np
import pytest

from relaax.algorithm_base import AgentBase, InvalidState, Metrics
from relaax.errors import ProtocolError
from relaax.protocol.framing import FrameConnection
from relaax.protocol.json.messages import (
    Act,
    RewardAndAct,
    RewardAndReset,
    ScalarMetric,
    decode_action,
    decode_score,
    encode_request,
)
from relaax.server.rlx_server.connection_agents import SeparateAgents
from relaax.server.rlx_server.conversation import JsonConversation
from relaax.server.rlx_server.worker import Worker


class StoredMetrics(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y, x))

    def of(self, name):
        return [y for stored, y, _ in self.values if stored == name]


class EchoAgent(AgentBase):
    """Answers with the state; a negative state is invalid."""

    def __init__(self):
        self.stored = StoredMetrics()
        self.score = 0.0

    def act(self, state):
        self.score = 0.0
        return self._echo(state)

    def reward_and_act(self, reward, state):
        self.score += reward
        return self._echo(state)

    def reward_and_reset(self, reward):
        return self.score + reward

    def metrics(self):
        return self.stored

    def _echo(self, state):
        if np.any(np.asarray(state) < 0):
            raise InvalidState("a state is negative")
        return state


class Session:
    """A client's end, and the worker on a thread."""

    def __init__(self, timeout_s=None):
        ours, theirs = socket.socketpair()
        self.client = FrameConnection(ours)
        self.agent = EchoAgent()
        self.error = None
        self._served = FrameConnection(theirs)
        agents = SeparateAgents([self.agent])
        self._worker = Worker(JsonConversation(), agents, self._served, timeout_s)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self._worker.run()
        except ProtocolError as error:
            self.error = error
        finally:
            self._served.close()

    def tell(self, message):
        self.client.send(encode_request(message))

    def ask(self, message):
        self.tell(message)
        return self.client.receive()

    def end(self):
        self.client.close()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture(name="session")
def _session():
    sessions = []

    def open_session(**options):
        sessions.append(Session(**options))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.end()


def test_an_episode_is_answered_message_by_message(session):
    talk = session()
    assert decode_action(talk.ask(Act(1))) == 1
    assert decode_action(talk.ask(RewardAndAct(0.5, [1.5, 2]))) == [1.5, 2]
    array = np.array([0.5, 0.25], np.float32)
    np.testing.assert_array_equal(decode_action(talk.ask(RewardAndAct(0.25, array))), array)
    assert decode_score(talk.ask(RewardAndReset(2.0))) == 2.75


def test_every_episode_leaves_its_metrics(session):
    talk = session()
    talk.ask(Act(1))
    talk.ask(RewardAndAct(1.0, 2))
    talk.ask(RewardAndReset(2.0))
    talk.ask(Act(1))
    talk.ask(RewardAndReset(10.0))
    talk.end()
    stored = talk.agent.stored
    assert stored.of("episode reward") == [3.0, 10.0]
    assert stored.of("episode length") == [1.5]  # the mean of what came within a second
    for name in ("episode time", "reward per time", "act latency"):
        (value,) = stored.of(name)
        assert value > 0, name


def test_act_in_the_middle_of_an_episode_ends_it(session):
    talk = session()
    talk.ask(Act(1))
    talk.ask(RewardAndAct(4.0, 2))
    talk.ask(Act(1))
    talk.end()
    assert talk.agent.stored.of("episode reward") == [4.0]


def test_metrics_of_the_client_are_stored_and_not_answered(session):
    talk = session()
    talk.tell(ScalarMetric("act latency on client", 0.125, None))
    talk.tell(ScalarMetric("speed", 3.0, 7.0))
    talk.tell(ScalarMetric("episode reward", 1e6))
    assert decode_action(talk.ask(Act(5))) == 5
    assert talk.agent.stored.values == [
        ("act latency on client", 0.125, None),
        ("speed", 3.0, 7.0),
        ("episode reward on client", 1e6, None),
    ]


@pytest.mark.parametrize("message", [RewardAndAct(1.0, 2), RewardAndReset(1.0)])
def test_a_reward_outside_of_an_episode_breaks_the_protocol(session, message):
    talk = session()
    assert talk.ask(message) is None
    talk.end()
    assert "no episode is going on" in str(talk.error)


def test_a_state_that_the_agent_refuses_closes_the_connection_with_its_reason(session):
    talk = session()
    assert talk.ask(Act(-1)) is None
    talk.end()
    assert str(talk.error) == "a state is negative"


def test_the_connection_is_closed_at_the_first_end_of_an_episode_after_the_timeout(session):
    talk = session(timeout_s=0.0)
    assert decode_action(talk.ask(Act(1))) == 1
    assert decode_action(talk.ask(RewardAndAct(1.0, 2))) == 2
    assert decode_score(talk.ask(RewardAndReset(1.0))) == 2.0
    assert talk.client.receive() is None


def test_a_cut_off_episode_is_an_end_for_the_timeout_too(session):
    talk = session(timeout_s=0.0)
    talk.ask(Act(1))
    talk.ask(RewardAndAct(1.0, 2))
    assert talk.ask(Act(1)) is None


def test_a_reward_that_no_algorithm_can_store_breaks_the_protocol(session):
    talk = session()
    talk.ask(Act(1))
    assert talk.ask(RewardAndAct(1e39, 2)) is None
    talk.end()
    assert "is 1e+39, not finite as a 32-bit float" in str(talk.error)
