"""A worker with a client of version 2, over a real socket pair, with an agent an environment."""

import pytest
from served_worker import BinaryClient

from relaax.algorithm_base import AgentBase
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Metric
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED


class RememberingAgent(AgentBase):
    """Acts by the first number of a state and keeps what is reported."""

    def __init__(self):
        self.told = []
        self.is_closed = False

    def act(self, state):
        self.told.append(("act", state[0]))
        return int(state[0])

    def reward_and_act(self, reward, state):
        self.told.append((reward, state[0]))
        return int(state[0])

    def reward_and_reset(self, reward):
        self.told.append((reward, "reset"))

    def close(self):
        self.is_closed = True


class Session:
    """A client with two environments, the worker and its agents."""

    def __init__(self, serve_separately, **options):
        self.agents = []
        self.served = serve_separately(self._make_agent, runs=True, **options)
        self.client = BinaryClient(self.served, environments=2)

    def _make_agent(self, number):
        assert number == len(self.agents)
        self.agents.append(RememberingAgent())
        return self.agents[-1]

    def answer(self):
        """Return the environments that were answered, their actions and their scores."""
        answers = self.client.answer()
        return answers.environments.tolist(), answers.actions.tolist(), answers.scores.tolist()

    def ask(self, *report):
        self.client.tell(*report)
        return self.answer()

    def refusal(self):
        """Return the error that the connection ends with."""
        with pytest.raises(binary.Error) as said:
            self.client.answer()
        assert self.client.receive() is None
        return said.value


@pytest.fixture(name="open_session")
def _open_session(serve_separately):
    return lambda **options: Session(serve_separately, **options)


def test_some_environments_report_while_others_have_not_been_answered(open_session):
    session = open_session()
    session.client.tell([0], [START], [0], [1])
    session.client.connection.send(binary.encode_metric(Metric("speed", 1.0)))
    session.client.tell([1], [START], [0], [2])
    assert session.answer() == ([0], [1], [])
    session.client.tell([0], [0], [0.5], [3])
    assert session.answer() == ([1], [2], [])
    assert session.answer() == ([0], [3], [])
    assert session.agents[0].told == [("act", 1), (0.5, 3)]
    assert session.served.stored.of("client/speed") == [1.0]


def test_an_agent_is_told_of_every_kind_of_end(open_session):
    session = open_session()
    session.ask([0, 1], [START, START], [0, 0], [1, 2])
    assert session.ask([0, 1], [TERMINATED, TRUNCATED | FINAL], [3, 4], [], [5]) == (
        [0, 1], [], [3.0, 4.0],
    )  # fmt: skip
    session.ask([1, 0], [START, START], [0, 0], [6, 7])
    session.ask([1], [TRUNCATED | FINAL | START], [8], [9], [10])
    session.ask([1], [START], [0], [11])
    assert session.agents[0].told == [("act", 1), (3.0, "reset"), ("act", 7)]
    assert session.agents[1].told == [
        ("act", 2), (4.0, 5), ("act", 6), (8.0, 10), ("act", 9), ("act", 11),
    ]  # fmt: skip


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
    said = session.refusal()
    assert "connect again" in said.text
    assert said.code == ErrorCode.GO_ELSEWHERE


def test_an_episode_that_is_given_up_is_an_end_for_the_timeout_too(open_session):
    session = open_session(timeout_s=0.0)
    session.ask([0], [START], [0], [1])
    assert session.ask([0], [START], [0], [5]) == ([0], [5], [])
    assert "connect again" in session.refusal().text


def test_a_reward_outside_of_an_episode_is_refused_by_the_clients_number(open_session):
    session = open_session()
    BinaryClient(session.served, environments=3)  # so that the worker's numbers are others
    third = BinaryClient(session.served, environments=2)
    third.ask([0], [START], [0], [1])
    third.tell([0, 1], [0, 0], [1, 1], [1, 1])
    with pytest.raises(binary.Error, match="no episode is going on in environment 1") as said:
        third.answer()
    assert said.value.code == ErrorCode.PROTOCOL
    assert session.ask([0], [START], [0], [1]) == ([0], [1], [])


def test_agents_are_closed_with_their_connection_and_numbered_on(open_session):
    session = open_session()
    session.client.close()
    other = BinaryClient(session.served, environments=1)
    other.ask([0], [START], [0], [1])
    assert [agent.is_closed for agent in session.agents] == [True, True, False]
    session.served.end()
    assert session.agents[2].is_closed


def test_actions_that_are_no_array_close_their_connection_alone(serve_separately):
    class Confused(RememberingAgent):
        def act(self, state):
            return [state[0]] if state[0] > 5 else {"no": "number"} if state[0] < 0 else 7

    served = serve_separately(lambda number: Confused(), runs=True)
    for states in ([6, 1], [-1, -1]):  # of different shapes; no numbers at all
        bad = BinaryClient(served, environments=2)
        bad.tell([0, 1], [START, START], [0, 0], states)
        with pytest.raises(
            binary.Error, match="of this server returned an unusable action"
        ) as said:
            bad.answer()
        assert said.value.code == ErrorCode.ALGORITHM
    assert BinaryClient(served).ask([0], [START], [0], [2]).actions.tolist() == [7]
