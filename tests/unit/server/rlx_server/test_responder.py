"""The messages of several connections as one, and the answers to each of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from served_worker import Stub

from relaax.errors import AgentError, InvalidState, NoRoom
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.tally import Tally
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.answers import Answer, Refusal
from relaax.server.rlx_server.worker.requests import Request
from relaax.server.rlx_server.worker.responder import Responder
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, AgentName, Steps

CUT = TRUNCATED | FINAL


def floats(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def bytes_(*values):
    return np.array(values, np.uint8).reshape(-1, 1)


class Responding:
    """A responder, its batch agent, and the slots of its connections."""

    def __init__(self, oracle):
        self.stub, self.oracle = Stub(), oracle
        agents = Agents(oracle, self.stub, act_together=True)
        self.responder = Responder(lambda: agents, is_shared=True)

    def connect(self, environments):
        return SimpleNamespace(slots=self.responder.open(Hello("", "", environments)))

    def leave(self, connection):
        self.responder.close_slots(connection.slots)

    def answer(self, *requests):
        return list(self.responder.answer(list(requests), arrived_at=0.0))

    def start(self, connection, states):
        numbers = range(len(connection.slots))
        return request(connection, numbers, [START] * len(numbers), states)


def request(connection, numbers, flags, observations=(), finals=()):
    numbers, flags = np.array(numbers), np.array(flags, np.uint8)
    rewards = np.where(flags == START, 0.0, numbers + 0.5)
    return Request(connection, Steps(numbers, flags, rewards, observations, finals))


@pytest.fixture(name="served")
def _served(oracle):
    return Responding(oracle)


def test_environments_are_told_their_places_among_those_of_all_workers(oracle, monkeypatch):
    tally, told = Tally(), []
    monkeypatch.setattr(
        oracle, "connected", lambda slots, infos: told.extend(info.place() for info in infos)
    )
    for _ in range(2):
        row = tally.row(tally.take())
        agents = Agents(oracle, Stub(), act_together=True)
        Responder(lambda agents=agents: agents, is_shared=False, row=row).open(Hello("", "", 2))
        oracle.slots.clear()  # each worker has an agent of its own
    assert told == [0, 1, 2, 3]


def test_names_of_agents_are_joined_for_those_that_want_an_action(served, monkeypatch):
    one, other = served.connect(2), served.connect(1)
    seen = []
    monkeypatch.setattr(
        served.oracle, "act", lambda read, states, _: seen.append(read.agents) or states
    )
    named = served.start(one, floats(1, 2))
    agents = [AgentName("left", "red"), AgentName("right", "blue")]
    named = named._replace(steps=replace(named.steps, agents=agents))
    served.answer(named, served.start(other, floats(3)))
    served.answer(request(other, [0], [0], floats(4)))
    assert seen == [[*agents, AgentName()], ()]


def actions_of(answers):
    return [answer.actions.tolist() for answer in answers]


def test_environments_become_slots_and_each_connection_gets_its_own_actions(served):
    first, second = served.connect(3), served.connect(2)
    served.answer(served.start(first, floats(1, 2, 3)), served.start(second, floats(4, 5)))
    answers = served.answer(
        request(first, [2, 0], [0, 0], floats(6, 7)), request(second, [1], [0], floats(8))
    )
    assert actions_of(answers) == [[[2, 6], [0, 7]], [[4, 8]]]
    assert served.oracle.sizes == [5, 3]
    assert served.oracle.reported[4] == [("start", 5), ("reward", 1.5), ("state", 8)]


def test_scores_go_to_the_connection_whose_episode_ended(served):
    first, second = served.connect(1), served.connect(1)
    served.answer(served.start(first, floats(1)), served.start(second, floats(2)))
    answers = served.answer(request(first, [0], [0], floats(3)), request(second, [0], [TERMINATED]))
    assert [answer.scores.tolist() for answer in answers] == [[], [0.5]]
    assert served.oracle.reported[1][-1] == ("terminated",)


def test_states_of_one_kind_are_checked_at_once(served):
    checks, check = [], served.oracle.check
    served.oracle.check = lambda states: checks.append(len(states)) or check(states)
    connections = [served.connect(2), served.connect(1)]
    served.answer(*(served.start(c, floats(*c.slots)) for c in connections))
    assert checks == [3]


def test_states_of_other_kinds_are_checked_one_by_one_and_joined(served):
    connections = [served.connect(1) for _ in range(3)]
    states = [floats(1), [[2]], floats(3).astype(np.float64)]
    answers = served.answer(*(served.start(c, s) for c, s in zip(connections, states, strict=True)))
    assert actions_of(answers) == [[[0, 1]], [[1, 2]], [[2, 3]]]
    assert served.oracle.sizes == [3]


@pytest.mark.parametrize("bad", [np.zeros((1, 2), np.float32), floats(np.nan), [["one"]]])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_bad_state_refuses_its_own_connection_alone(served, bad, position):
    connections = [served.connect(1) for _ in range(3)]
    states = [floats(1), floats(2)]
    states.insert(position, bad)
    answers = served.answer(*(served.start(c, s) for c, s in zip(connections, states, strict=True)))
    refused = answers.pop(position)
    assert isinstance(refused, Refusal)
    assert refused.session is connections[position]
    assert isinstance(refused.error, InvalidState)
    assert all(isinstance(answer, Answer) for answer in answers)


def test_bytes_do_not_follow_floats_while_an_environment_is_there(served):
    first, second = served.connect(1), served.connect(1)
    served.answer(served.start(first, floats(1)))
    (refused,) = served.answer(served.start(second, bytes_(1)))
    assert "uint8[1], those of the other environments here are float32" in str(refused.error)
    served.leave(first)
    served.leave(second)
    (answer,) = served.answer(served.start(served.connect(1), bytes_(1)))
    assert isinstance(answer, Answer)


def test_environments_that_find_no_room_are_not_counted(served):
    there = served.connect(1)
    served.answer(served.start(there, floats(1)))
    served.oracle.is_full = True
    with pytest.raises(NoRoom):
        served.connect(1)
    served.leave(there)
    served.oracle.is_full = False
    (answer,) = served.answer(served.start(served.connect(1), bytes_(1)))
    assert isinstance(answer, Answer)


@pytest.mark.parametrize("error", [InvalidState("no"), AgentError("no"), KeyError("no")])
@pytest.mark.parametrize("fails", ["open", "connected"])
def test_environments_that_an_agent_refuses_are_not_counted_and_leave_their_slots(
    served, monkeypatch, fails, error
):
    def fail(*arguments):
        raise error

    there = served.connect(1)
    monkeypatch.setattr(served.oracle, fails, fail)
    with pytest.raises(type(error)):
        served.connect(2)
    monkeypatch.undo()
    assert served.responder.environments == 1
    assert served.oracle.slots == {0}
    assert served.connect(2).slots.tolist() == [1, 2]
    served.leave(there)


def test_memory_that_runs_out_when_environments_are_introduced_is_no_room(served, monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(served.oracle, "connected", fail)
    with pytest.raises(NoRoom):
        served.connect(2)
    assert served.responder.environments == 0


@pytest.mark.parametrize("actions", [np.array(1), np.array(1.0), 1, None])
def test_an_agent_that_returns_no_rows_is_named_and_the_worker_goes_on(served, actions):
    connection, act = served.connect(1), served.oracle.act
    served.oracle.act = lambda *_: actions
    (refused,) = served.answer(served.start(connection, floats(1)))
    assert isinstance(refused.error, AgentError)
    assert str(refused.error).startswith("the algorithm of this worker returned ")
    served.oracle.act = act
    (answer,) = served.answer(served.start(served.connect(1), floats(1)))
    assert isinstance(answer, Answer)


@pytest.mark.parametrize("error", [InvalidState("a bad step"), AgentError("it failed")])
def test_a_refusal_of_an_acting_agent_is_for_all_and_counted_once(served, error):
    first, second = served.connect(1), served.connect(1)
    served.answer(served.start(first, floats(1)), served.start(second, floats(2)))
    acted = []

    def act(*what):
        acted.append(what)
        raise error

    served.oracle.act = act
    answers = served.answer(request(first, [0], [TERMINATED]), request(second, [0], [0], floats(3)))
    assert [answer.session for answer in answers] == [first, second]
    assert [answer.error for answer in answers] == [error, error]
    assert len(acted) == 1
    assert served.stub.stored.of("episode/reward") == [0.5]


def test_without_states_the_agent_still_learns_of_the_end(served):
    there = served.connect(1)
    served.answer(served.start(there, floats(1)))
    (answer,) = served.answer(request(there, [0], [TERMINATED]))
    assert (len(answer.actions), answer.scores.tolist()) == (0, [0.5])
    assert served.oracle.reported[0][1:] == [("reward", 0.5), ("terminated",)]


@pytest.mark.parametrize("form", [np.array, list])
def test_last_states_of_terminated_episodes_are_left_out(served, form):
    there = served.connect(5)
    served.answer(served.start(there, floats(0, 0, 0, 0, 0)))
    flags = [TERMINATED | FINAL, CUT, 0, CUT | START, TERMINATED | FINAL | START]
    finals = form([[10.0], [11.0], [12.0], [13.0]])
    served.answer(request(there, range(5), flags, form([[1.0], [2.0], [3.0]]), finals))
    truncated = {
        slot: [what[1] for what in reports if what[0] == "truncated"]
        for slot, reports in served.oracle.reported.items()
    }
    assert truncated == {0: [], 1: [11], 2: [], 3: [12], 4: []}


def test_last_states_keep_the_order_of_their_messages(served):
    connections = [served.connect(1) for _ in range(3)]
    served.answer(*(served.start(c, floats(0)) for c in connections))
    first, second, third = connections
    served.answer(
        request(first, [0], [CUT], (), floats(10)),
        request(second, [0], [0], floats(1)),
        request(third, [0], [CUT], (), floats(12)),
    )
    assert served.oracle.reported[0][-1] == ("truncated", 10)
    assert served.oracle.reported[2][-1] == ("truncated", 12)


def test_closing_ends_the_agent_and_then_the_stub(served, oracle):
    served.connect(1)
    served.stub.close = lambda: setattr(served.stub, "is_closed", oracle.is_closed)
    served.responder.close()
    assert served.stub.is_closed


def test_a_large_connection_does_not_make_the_others_wait_for_a_compiler(served, oracle):
    served.connect(1000)
    assert oracle.warmed == []
