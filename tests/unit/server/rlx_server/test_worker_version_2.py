"""The message loop with a client of version 2, over a real socket pair."""

import contextlib
import socket
import threading

import numpy as np
import pytest

from relaax.algorithm_base import AgentBase, Metrics
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode, Hello, Metric
from relaax.server.rlx_server.connection_agents import SeparateAgents
from relaax.server.rlx_server.conversation import BinaryConversation
from relaax.server.rlx_server.worker import Worker
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps


class NoMetrics(Metrics):
    def scalar(self, name, y, x=None):
        pass


class RememberingAgent(AgentBase):
    """Acts by the first number of a state and keeps what it is told."""

    def __init__(self):
        self.told = []

    def act(self, state):
        self.told.append(("act", state[0]))
        return int(state[0])

    def reward_and_act(self, reward, state):
        self.told.append((reward, state[0]))
        return int(state[0])

    def reward_and_reset(self, reward):
        self.told.append((reward, "reset"))

    def metrics(self):
        return NoMetrics()


class Session:
    """A client's end, and a worker for two environments."""

    def __init__(self, sockets, timeout_s=None):
        ours, theirs = sockets
        self.client = FrameConnection(ours)
        self.agents = [RememberingAgent(), RememberingAgent()]
        conversation = BinaryConversation(Hello("a", "b", 2))
        self._served = FrameConnection(theirs)
        worker = Worker(conversation, SeparateAgents(self.agents), self._served, timeout_s)
        self._thread = threading.Thread(target=self._serve, args=(worker,))
        self._thread.start()

    def _serve(self, worker):
        worker.run()
        self._served.close()

    def tell(self, environments, flags, rewards, states=(), finals=()):
        self.client.send(
            binary.encode_steps(
                Steps(
                    np.array(environments), np.array(flags, np.uint8), np.array(rewards, float),
                    np.array([[state] for state in states], np.float32),
                    np.array([[state] for state in finals], np.float32),
                )
            )
        )  # fmt: skip

    def answer(self):
        """Return the environments that were answered, their actions and their scores."""
        answers = binary.decode_answers(self.client.receive(timeout_s=20))
        return answers.environments.tolist(), answers.actions.tolist(), answers.scores.tolist()

    def ask(self, *report):
        self.tell(*report)
        return self.answer()

    def close(self):
        self.client.close()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture(name="open_session")
def _open_session():
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            contextlib.closing(Session(socket.socketpair(), **options))
        )


def test_some_environments_report_while_others_have_not_been_answered(open_session):
    session = open_session()
    session.tell([0], [START], [0], [1])
    session.client.send(binary.encode_metric(Metric("speed", 1.0)))
    session.tell([1], [START], [0], [2])
    assert session.answer() == ([0], [1], [])
    session.tell([0], [0], [0.5], [3])
    assert session.answer() == ([1], [2], [])
    assert session.answer() == ([0], [3], [])
    assert session.agents[0].told == [("act", 1), (0.5, 3)]


@pytest.mark.parametrize(
    ("flags", "states", "finals", "actions"),
    [
        ([TERMINATED, 0], [7], (), [7]),
        ([TERMINATED | START, 0], [6, 7], (), [6, 7]),
        ([TRUNCATED | FINAL, 0], [7], [9], [7]),
    ],
)
def test_after_the_timeout_a_message_with_an_end_is_answered_before_the_goodbye(
    open_session, flags, states, finals, actions
):
    session = open_session(timeout_s=0.0)
    assert session.ask([0, 1], [START, START], [0, 0], [1, 2]) == ([0, 1], [1, 2], [])
    assert session.ask([0, 1], [0, 0], [1, 1], [3, 4]) == ([0, 1], [3, 4], [])
    assert session.ask([0, 1], flags, [0.25, 0.5], states, finals) == ([0, 1], actions, [1.25])
    assert session.agents[0].told[2][0] == 0.25
    with pytest.raises(binary.Error, match="connect again") as said:
        session.answer()
    assert said.value.code == ErrorCode.GO_ELSEWHERE
    assert session.client.receive() is None


def test_an_episode_that_is_given_up_is_an_end_for_the_timeout_too(open_session):
    session = open_session(timeout_s=0.0)
    session.ask([0], [START], [0], [1])
    assert session.ask([0], [START], [0], [5]) == ([0], [5], [])
    with pytest.raises(binary.Error, match="connect again"):
        session.answer()
