"""Who chooses: a batch agent for all environments, or an agent for each."""

import numpy as np
import pytest
from served_worker import Oracle, Stub

from relaax.algorithm_base import AgentBase
from relaax.errors import InvalidState
from relaax.server.rlx_server.worker.agents import BatchAgents, SeparateAgents
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, read_transitions


def transitions(slots, flags, rewards):
    flags = np.array(flags, np.uint8)
    is_running = np.ones(len(flags), np.bool_)
    return read_transitions(np.array(slots), flags, np.array(rewards, float), is_running)


def floats(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def bytes_(*values):
    return np.array(values, np.uint8).reshape(-1, 1)


class TestBatchAgents:
    @pytest.fixture(name="agents")
    def _agents(self, oracle):
        return BatchAgents(oracle, Stub())

    def test_a_large_connection_does_not_make_the_others_wait_for_a_compiler(self, agents, oracle):
        agents.open(np.arange(1000))
        assert oracle.warmed == []

    def test_environments_that_find_no_room_are_not_counted(self, agents, oracle):
        agents.open(np.array([0]))
        agents.act(transitions([0], [START], [0]), agents.check([floats(1)]), ())
        oracle.is_full = True
        with pytest.raises(MemoryError):
            agents.open(np.array([1]))
        agents.close_slots(np.array([0]))
        assert agents.check([bytes_(1)]).dtype == np.uint8

    def test_states_of_one_kind_are_checked_at_once_and_in_their_order(self, agents, oracle):
        checks = []
        check = oracle.check
        oracle.check = lambda states: checks.append(len(states)) or check(states)
        joined = agents.check([floats(1, 2), floats(3), floats(4, 5)])
        assert checks == [5]
        assert joined.ravel().tolist() == [1, 2, 3, 4, 5]

    def test_states_of_other_kinds_are_checked_one_by_one(self, agents):
        joined = agents.check([floats(1), [[2]], floats(3).astype(np.float64)])
        assert (joined.ravel().tolist(), joined.dtype) == ([1, 2, 3], np.float32)

    @pytest.mark.parametrize("bad", [np.zeros((1, 2), np.float32), floats(np.nan), [["one"]]])
    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_one_bad_state_refuses_all_that_are_joined(self, agents, bad, position):
        parts = [floats(1), floats(2)]
        parts.insert(position, bad)
        with pytest.raises(InvalidState):
            agents.check(parts)

    def test_bytes_and_floats_are_not_joined(self, agents):
        with pytest.raises(InvalidState, match="observations of different kinds"):
            agents.check([floats(1), bytes_(1)])

    def test_bytes_do_not_follow_floats_while_an_environment_is_there(self, agents):
        agents.open(np.array([0, 1]))
        agents.act(transitions([0], [START], [0]), agents.check([floats(1)]), ())
        agents.close_slots(np.array([0]))
        with pytest.raises(InvalidState, match=r"uint8\[1\], .* environments here are float32"):
            agents.check([bytes_(1)])
        agents.close_slots(np.array([1]))
        assert agents.check([bytes_(1)]).dtype == np.uint8

    def test_without_states_the_agent_still_learns_of_the_end(self, agents, oracle):
        agents.open(np.array([0]))
        agents.act(transitions([0], [TERMINATED], [2.0]), agents.check([]), agents.check([]))
        assert oracle.reported[0] == [("reward", 2.0), ("terminated",)]

    def test_closing_ends_the_agent_and_then_the_stub(self, oracle):
        stub = Stub()
        agents = BatchAgents(oracle, stub)
        stub.close = lambda: setattr(stub, "is_closed", oracle.is_closed)
        agents.close()
        assert stub.is_closed
        assert agents.metrics() is stub.stored


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


class TestSeparateAgents:
    @pytest.fixture(name="calls")
    def _calls(self):
        return []

    @pytest.fixture(name="agents")
    def _agents(self, calls):
        return SeparateAgents(lambda number: Noting(number, calls), Stub())

    def test_each_environment_has_an_agent_with_a_number_of_its_own(self, agents, calls):
        agents.open(np.array([4, 2]))
        agents.close_slots(np.array([4]))
        agents.open(np.array([4]))
        actions = agents.act(transitions([2, 4], [START, START], [0, 0]), ["x", "y"], [])
        assert actions == [1, 2]
        assert calls == [(0, "close"), (1, "act", "x"), (2, "act", "y")]

    def test_every_kind_of_transition_becomes_the_calls_of_the_seed(self, agents, calls):
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

    def test_states_are_left_as_they_are(self, agents):
        parts = [[{"any": "thing"}], floats(1, 2)]
        first, second, third = agents.check(parts)
        assert first == {"any": "thing"}
        assert (second.tolist(), third.tolist()) == ([1], [2])

    def test_all_agents_are_closed_at_the_end_and_the_stub_after_them(self, calls):
        stub = Stub()
        agents = SeparateAgents(lambda number: Noting(number, calls), stub)
        agents.open(np.arange(2))
        stub.close = lambda: calls.append("stub")
        agents.close()
        agents.close()
        assert calls == [(0, "close"), (1, "close"), "stub", "stub"]

    def test_agents_that_were_made_before_memory_ran_out_are_closed(self, calls):
        def make(number):
            if number == 2:
                raise MemoryError("36 GiB")
            return Noting(number, calls)

        agents = SeparateAgents(make, Stub())
        with pytest.raises(MemoryError):
            agents.open(np.arange(3))
        agents.close()
        assert calls == [(0, "close"), (1, "close")]


def test_only_batches_are_evaluated_together():
    assert BatchAgents(Oracle(), Stub()).act_together
    assert not SeparateAgents(lambda number: Noting(number, []), Stub()).act_together
