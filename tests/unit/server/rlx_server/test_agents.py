"""An agent for each environment, behind the interface of one for all."""

import logging

import numpy as np
import pytest
from served_worker import Stub

from relaax.algorithm_base import AgentBase
from relaax.server.rlx_server.worker.agents import Agents, SeparateAgents
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, read_transitions
from relaax.telemetry.throttled_log import FailureLog

FAILURES = FailureLog(logging.getLogger(__name__))


def transitions(slots, flags, rewards):
    flags = np.array(flags, np.uint8)
    is_running = np.ones(len(flags), np.bool_)
    return read_transitions(np.array(slots), flags, np.array(rewards, float), is_running)


class Noting(AgentBase):
    """Keeps its calls; acts with its number."""

    def __init__(self, number, calls):
        self.number, self.calls = number, calls

    def act(self, state):
        self.calls.append((self.number, "act", state))
        return self.number

    def reward_and_act(self, reward, state):
        self.calls.append((self.number, reward, state))
        return self.number

    def reward_and_reset(self, reward):
        self.calls.append((self.number, reward, "reset"))

    def close(self):
        self.calls.append((self.number, "close"))


@pytest.fixture(name="calls")
def _calls():
    return []


@pytest.fixture(name="agents")
def _agents(calls):
    return SeparateAgents(lambda number: Noting(number, calls), FAILURES)


def test_each_environment_has_an_agent_with_a_number_of_its_own(agents, calls):
    agents.open(np.array([4, 2]))
    agents.close_slots(np.array([4]))
    agents.open(np.array([4]))
    actions = agents.act(transitions([2, 4], [START, START], [0, 0]), ["x", "y"], [])
    assert actions == [1, 2]
    assert calls == [(0, "close"), (1, "act", "x"), (2, "act", "y")]


def test_every_kind_of_transition_becomes_the_calls_of_the_seed(agents, calls):
    agents.open(np.arange(7))
    cut = TRUNCATED | FINAL
    flags = [0, START, TERMINATED, TERMINATED | START, cut, cut | START, 0]
    told = transitions(range(7), flags, [0.5, 0, 2, 3, 4, 5, 6])
    actions = agents.act(told, ["s0", "s1", "s3", "s5", "s6"], ["last4", "last5"])
    assert actions == [0, 1, 3, 5, 6]
    by_agent = {n: [call[1:] for call in calls if call[0] == n] for n in range(7)}
    assert by_agent == {
        0: [(0.5, "s0")],
        1: [("act", "s1")],
        2: [(2, "reset")],
        3: [(3, "reset"), ("act", "s3")],
        4: [(4, "last4")],
        5: [(5, "last5"), ("act", "s5")],
        6: [(6, "s6")],
    }


def test_states_are_left_as_they_are(agents):
    (first,) = agents.check([{"any": "thing"}])
    assert first == {"any": "thing"}
    rows = np.array([[1], [2]], np.float32)
    assert [(state.dtype, state.tolist()) for state in agents.check(rows)] == [
        (np.float32, [1]),
        (np.float32, [2]),
    ]


def test_an_array_is_the_agents_own_and_a_single_number_a_plain_one(agents):
    sent = np.frombuffer(np.arange(6, dtype=np.float32).tobytes(), np.float32).reshape(2, 3)
    first, second = agents.check(sent)
    first += 1
    assert (first.tolist(), second.tolist()) == ([1, 2, 3], [3, 4, 5])
    assert sent.tolist() == [[0, 1, 2], [3, 4, 5]]
    for numbers, kind in ((np.array([3, 4]), int), (np.array([0.5, 1]), float)):
        assert [type(state) for state in agents.check(numbers)] == [kind, kind]


def test_an_agent_may_tell_an_episode_that_was_cut_off_from_a_step():
    calls = []

    class Exact(Noting):
        def reward_and_truncate(self, reward, state):
            calls.append((self.number, reward, state, "cut off"))

    agents = SeparateAgents(lambda number: Exact(number, calls), FAILURES)
    agents.open(np.arange(2))
    cut = TRUNCATED | FINAL
    agents.act(transitions([0, 1], [cut, cut | START], [4, 5]), ["s1"], ["last0", "last1"])
    assert calls == [(0, 4, "last0", "cut off"), (1, 5, "last1", "cut off"), (1, "act", "s1")]


def test_all_agents_are_closed_at_the_end_and_the_stub_after_them(calls):
    stub = Stub()
    stub.close = lambda: calls.append("stub")
    separate = SeparateAgents(lambda number: Noting(number, calls), FAILURES)
    separate.open(np.arange(2))
    Agents(separate, stub, act_together=False).close()
    separate.close()
    assert calls == [(0, "close"), (1, "close"), "stub"]


def test_agents_that_were_made_before_memory_ran_out_are_closed(calls):
    def make(number):
        if number == 2:
            raise MemoryError("36 GiB")
        return Noting(number, calls)

    agents = SeparateAgents(make, FAILURES)
    with pytest.raises(MemoryError):
        agents.open(np.arange(3))
    agents.close()
    assert calls == [(0, "close"), (1, "close")]
