"""Reports of executed actions, in both versions: one environment a connection and several."""

import numpy as np
import pytest
from json_requests import Act, RewardAndAct, RewardAndReset
from learning_parts import SMALL, SMALL_COLUMNS, Kept, small_policy
from served_worker import BinaryClient, JsonClient

from relaax.acting.actor import Actor
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import AgentBase
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.rollouts import RolloutStore
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.spaces import discrete
from relaax.steps import EXECUTED, START, TERMINATED, Steps

STATES = np.zeros((3, 2), np.float32)
REFUSED = "an executed action holds 2, which lies above the largest choice, 1"


@pytest.fixture(name="kept")
def _kept():
    return Kept()


@pytest.fixture(name="served")
def _served(serve, kept):
    """A worker whose agent chooses one of two actions, and makes rollouts of two steps."""
    actor = Actor(
        preprocessor=Preprocessor((2,), 1),
        policy=small_policy(),
        model=NumpyPolicy(SMALL, Categorical(2)),
        distribution=Categorical(2),
        columns=SMALL_COLUMNS,
        rollouts=RolloutStore(2, SMALL_COLUMNS),
        experience=kept,
        random=np.random.default_rng(5),
        executed=ExecutedActions(discrete(2)),
    )
    return serve(actor)


def encoded(flags, executed, count=1, width=2):
    """A message of steps of the first environments, of which all that are not over have a state."""
    acting = count - sum(flag & TERMINATED != 0 for flag in flags)
    return binary.encode_steps(
        Steps(
            np.arange(count),
            np.array(flags, np.uint8),
            np.zeros(count),
            STATES[:acting, :width],
            (),
            np.array(executed),
        )
    )


def ask(client, *message):
    """The actions that answer a message."""
    client.connection.send(encoded(*message))
    return client.answer().actions


def test_the_environments_of_a_connection_report_each_its_own(served, kept):
    client = BinaryClient(served, environments=3)
    first = ask(client, [START] * 3, [], 3)
    second = ask(client, [EXECUTED, 0, EXECUTED], [1 - first[0], first[2]], 3)
    ask(client, [0, EXECUTED, EXECUTED], 1 - second[1:], 3)
    (rollouts,) = kept.rollouts
    assert rollouts.on_policy.T.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert rollouts.actions.tolist() == [first.tolist(), second.tolist()]


def test_reports_of_several_connections_at_once_are_told_apart(served, kept):
    clients = [BinaryClient(served) for _ in range(3)]
    actions = [ask(client, [START], []).item() for client in clients]
    for _ in range(2):
        for client, action, differs in zip(clients, actions, (True, False, True), strict=True):
            client.connection.send(encoded([EXECUTED], [1 - action if differs else action]))
        actions = [client.answer().actions.item() for client in clients]
    on_policy = [column for each in kept.rollouts for column in each.on_policy.T.tolist()]
    assert sorted(on_policy) == [[0, 0], [0, 0], [1, 1]]


def test_version_1_reports_them_too(served, kept):
    client = JsonClient(served)
    client.tell(Act([0, 0]))
    client.tell(RewardAndAct(1.0, [1, 0], 1 - client.action()))
    client.tell(RewardAndReset(1.0, client.action()))
    assert client.score() == 2.0
    client.tell(Act([2, 0]))
    client.action()
    (rollout,) = kept.rollouts
    assert rollout.on_policy.T.tolist() == [[0, 1]]


def test_an_executed_action_that_does_not_fit_ends_its_own_connection_with_its_value(served, kept):
    """Nothing is counted or stored of the step; the others go on."""
    good, bad = BinaryClient(served), BinaryClient(served)
    for client in (good, bad):
        ask(client, [START], [])
    for client, executed in ((good, 1), (bad, 2)):
        client.connection.send(encoded([EXECUTED], [executed]))
    assert len(good.answer().actions) == 1
    with pytest.raises(binary.Error, match=REFUSED) as refused:
        bad.answer()
    assert refused.value.code == ErrorCode.MISMATCH
    assert len(ask(good, [0], [])) == 1
    assert [rollout.count for rollout in kept.rollouts] == [1]


@pytest.mark.parametrize("executed", [2, -1, 0.5, [0], "none"])
def test_in_version_1_it_closes_the_connection_and_the_log_has_the_value(served, caplog, executed):
    client = JsonClient(served)
    client.tell(Act([0, 0]))
    client.action()
    action = {"b64npz": 5} if executed == "none" else executed
    client.tell(RewardAndAct(1.0, [1, 0], action))
    assert client.receive() is None
    assert "executed action" in caplog.text or "b64npz" in caplog.text


class Noting(AgentBase):
    """Acts with 1, and keeps the actions that were executed instead."""

    def __init__(self, calls):
        self.calls = calls

    def act(self, state):
        return 1

    def reward_and_act(self, reward, state):
        self.calls.append(reward)
        return 1

    def reward_and_reset(self, reward):
        self.calls.append(reward)


class Taking(Noting):
    """Keeps, too, what was executed."""

    def executed(self, action):
        self.calls.append(("executed", action))


def test_an_agent_of_one_environment_is_told_before_the_reward(serve_separately):
    calls = []
    served = serve_separately(lambda number: Taking(calls))
    client, first = BinaryClient(served), JsonClient(served)
    ask(client, [START], [])
    ask(client, [EXECUTED], [[0.5, 1.5]])
    assert [calls[0][1].tolist(), calls[1]] == [[0.5, 1.5], 0.0]
    first.tell(Act([0]))
    first.action()
    first.tell(RewardAndReset(2.0, 0))
    assert first.score() == 2.0
    assert calls[2:] == [("executed", 0), 2.0]


def test_an_algorithm_that_does_not_take_them_refuses_them(serve, serve_separately):
    for served in (serve(), serve_separately(lambda number: Noting([]))):
        client = BinaryClient(served)
        client.ask([0], [START], [0], [1])
        client.connection.send(encoded([EXECUTED], [0], width=1))
        with pytest.raises(binary.Error, match="takes no executed actions") as refused:
            client.answer()
        assert refused.value.code == ErrorCode.MISMATCH
