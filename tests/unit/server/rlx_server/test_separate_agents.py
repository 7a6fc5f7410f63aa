"""Algorithms without batches: a worker asks their agents connection by connection."""

import json

import pytest
from json_requests import Act, RewardAndAct
from served_worker import BinaryClient, JsonClient

from relaax.algorithm_base import AgentBase, InvalidState
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

CUT = TRUNCATED | FINAL


class Noting(AgentBase):
    """Keeps its calls in one list with all others; acts with its number; refuses 99."""

    def __init__(self, number, calls):
        self.number, self.calls = number, calls

    def act(self, state):
        return self._note("act", state)

    def reward_and_act(self, reward, state):
        return self._note(reward, state)

    def reward_and_reset(self, reward):
        self.calls.append((self.number, reward))

    def _note(self, what, state):
        if state[0] == 99:
            raise InvalidState("the state is 99")
        self.calls.append((self.number, what, state[0]))
        return self.number


class Faulty(Noting):
    """Fails as code that was not written for strangers does, and fails to close."""

    def _note(self, what, state):
        if state[0] == 13:
            return {}["a state that was never expected"]
        return super()._note(what, state)

    def close(self):
        raise RuntimeError("it does not close")


@pytest.fixture(name="calls")
def _calls():
    return []


@pytest.fixture(name="served")
def _served(serve_separately, calls):
    return serve_separately(lambda number: Noting(number, calls))


def test_connections_that_are_ready_together_are_asked_one_after_the_other(served, calls):
    many, single, first = BinaryClient(served, 2), BinaryClient(served), JsonClient(served)
    many.tell([0, 1], [START, START], [0, 0], [1, 2])
    single.tell([0], [START], [0], [3])
    first.tell(Act([4]))
    served.turn(2)
    assert many.answer().actions.tolist() == [0, 1]
    assert single.answer().actions.tolist() == [2]
    assert first.action() == 3
    of_many = calls.index((0, "act", 1))
    assert calls[of_many + 1] == (1, "act", 2), "a connection is answered as a whole"
    assert sorted(calls) == [(0, "act", 1), (1, "act", 2), (2, "act", 3), (3, "act", 4)]


def test_a_state_that_one_agent_refuses_ends_its_connection_alone(served, calls):
    clients = [BinaryClient(served), BinaryClient(served), BinaryClient(served)]
    for client in clients:
        client.ask([0], [START], [0], [1])
    calls.clear()
    for client, state in zip(clients, (5, 99, 7), strict=True):
        client.tell([0], [0], [0.5], [state])
    served.turn()
    assert clients[0].answer().actions.tolist() == [0]
    assert clients[2].answer().actions.tolist() == [2]
    with pytest.raises(binary.Error, match="the state is 99"):
        clients[1].answer()
    assert sorted(calls) == [(0, 0.5, 5), (2, 0.5, 7)]
    assert served.load == 2


def test_ends_and_starts_reach_the_agents_of_their_environments(served, calls):
    many = BinaryClient(served, 3)
    many.ask([0, 1, 2], [START] * 3, [0] * 3, [1, 1, 1])
    calls.clear()
    flags = [CUT | START, TERMINATED | START, TERMINATED]
    answer = many.ask([2, 0, 1], flags, [1, 2, 3], [4, 5], [6])
    assert answer.actions.tolist() == [2, 0]
    assert answer.scores.tolist() == [1, 2, 3]
    assert [call for call in calls if call[0] == 0] == [(0, 2.0), (0, "act", 5)]
    assert [call for call in calls if call[0] == 1] == [(1, 3.0)]
    assert [call for call in calls if call[0] == 2] == [(2, 1.0, 6), (2, "act", 4)]


def test_any_kind_of_state_reaches_them_in_version_1(served, serve_separately):
    seen = []

    class Curious(AgentBase):
        def __init__(self):
            pass

        def act(self, state):
            seen.append(state)
            return 0

        def reward_and_act(self, reward, state):
            return self.act(state)

        def reward_and_reset(self, reward):
            pass

    client = JsonClient(serve_separately(lambda number: Curious()))
    for message in (Act({"position": [1, 2]}), RewardAndAct(0.0, "a word"), RewardAndAct(0.0, 7)):
        client.tell(message)
        assert client.action() == 0
    assert seen == [{"position": [1, 2]}, "a word", 7]


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_a_state_that_is_nested_without_end_ends_its_connection_alone(
    served, calls, opens, closes, caplog
):
    other, deep = BinaryClient(served), JsonClient(served)
    state = opens * 500 + "1" + closes * 500
    deep.connection.send(json.dumps(["act", state]).encode())
    other.tell([0], [START], [0], [1])
    served.turn(2)
    assert other.answer().actions.tolist() == [0]
    assert deep.receive() is None
    assert "nested too deeply" in caplog.text
    assert served.load == 1


def test_an_agent_that_fails_ends_its_connection_alone(serve_separately, calls, caplog):
    served = serve_separately(lambda number: Faulty(number, calls))
    unlucky, other = BinaryClient(served), BinaryClient(served)
    for client in (unlucky, other):
        client.ask([0], [START], [0], [1])
    unlucky.tell([0], [0], [0.5], [13])
    other.tell([0], [0], [0.5], [7])
    served.turn()
    assert other.answer().actions.tolist() == [1]
    with pytest.raises(binary.Error, match="the agent failed: KeyError") as said:
        unlucky.answer()
    assert said.value.code == ErrorCode.ALGORITHM
    assert served.load == 1
    assert "an agent failed to close" in caplog.text
    assert "never expected" in caplog.text, "the traceback is in the log"
    assert other.ask([0], [0], [0.5], [8]).actions.tolist() == [1]


def test_an_agent_that_cannot_be_made_ends_its_connection_alone_with_the_reason(
    serve_separately, calls, caplog
):
    def make(number):
        if number == 1:
            raise OSError("no weights")
        return Noting(number, calls)

    served = serve_separately(make)
    first = BinaryClient(served)
    with pytest.raises(binary.Error, match="making the agent failed: OSError: no weights") as said:
        BinaryClient(served, 2)
    assert said.value.code == ErrorCode.ALGORITHM
    assert caplog.text.count("Traceback") == 1
    assert served.load == 1
    assert first.ask([0], [START], [0], [1]).actions.tolist() == [0]


@pytest.mark.parametrize("when", ["made", "connected"])
def test_agents_that_were_made_are_closed_when_one_of_them_refuses_its_environment(
    serve_separately, calls, when
):
    closed = []

    class Choosy(Noting):
        def __init__(self, number):
            super().__init__(number, calls)
            self._refuse("made")

        def connected(self, environment):
            self._refuse("connected")

        def close(self):
            closed.append(self.number)

        def _refuse(self, now):
            if self.number == 1 and when == now:
                raise InvalidState("not this environment")

    served = serve_separately(Choosy)
    with pytest.raises(binary.Error, match="not this environment") as said:
        BinaryClient(served, 3)
    assert said.value.code == ErrorCode.MISMATCH
    assert closed == ([0] if when == "made" else [0, 1, 2])
    assert served.load == 0


def test_the_same_failure_of_several_agents_is_one_traceback(serve_separately, calls, caplog):
    served = serve_separately(lambda number: Faulty(number, calls))
    for client in [BinaryClient(served) for _ in range(3)]:
        client.tell([0], [START], [0], [13])
        served.turn()
    assert caplog.text.count("the agent failed again: KeyError") == 2
    assert caplog.text.count("in _note") == 1
