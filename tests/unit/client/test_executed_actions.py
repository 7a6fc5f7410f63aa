"""Clients and runners report the actions that were executed, where they are not those sent."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array
from gymnasium.wrappers.vector import DictInfoToList

from relaax.client import Client, Failure, VectorClient
from relaax.client.gymnasium_actions import ExecutedActionReader
from relaax.client.gymnasium_tasks import GymnasiumRunner
from relaax.client.vector_runner import VectorRunner
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Welcome
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Steps

STATE, STATES = np.zeros(2, np.float32), np.zeros((2, 2), np.float32)


def older(number):
    """The greeting of a server that knows of no executed actions."""
    return binary.encode_welcome(Welcome(executed_actions=False))


def reported(server):
    """Flags and executed actions of each message."""
    return [(s.flags.tolist(), np.asarray(s.executed).tolist()) for s in server.steps]


def test_each_report_of_a_step_may_bring_one(server):
    with Client(server.url) as client:
        client.init(STATE)
        client.send(0.0, STATE)
        client.send(0.0, STATE, action=0)
        client.truncate(0.0, STATE, action=np.float32([0.5, -0.5]))
        client.init(STATE)
        client.reset(0.0, action=np.int64(1))
    assert reported(server) == [
        ([START], []),
        ([0], []),
        ([EXECUTED], [0]),
        ([TRUNCATED | FINAL | EXECUTED], [[0.5, -0.5]]),
        ([START], []),
        ([TERMINATED | EXECUTED], [1]),
    ]
    assert server.steps[2].executed.dtype == np.int64
    assert server.steps[3].executed.dtype == np.float32


def test_in_version_1_it_is_one_more_element(start_server):
    server = start_server()
    with Client(server.url, protocol=1) as client:
        client.init(0)
        client.send(0.5, 1, action=2)
        client.send(0.5, 1, action=[0.5, -0.5])
        client.truncate(0.5, 2, action=1)
        client.init(3)
        client.reset(1.0, action=0)
    sent, as_array, cut = server.messages[1:4]
    assert sent == ["reward_and_act", 0.5, "1", 2]
    assert (as_array[:3], list(as_array[3])) == (sent[:3], ["b64npz"])
    assert cut == ["reward_and_act", 0.5, "2", 1]
    assert server.messages[-1] == ["reward_and_reset", 1.0, 0]


def test_many_environments_report_theirs_together(server):
    with VectorClient(server.url, 2) as client:
        client.init(STATES)
        client.send(np.zeros(2), STATES, actions=[1, 0])
        is_first = np.array([True, False])
        client.send(np.zeros(2), STATES, truncated=is_first, finals=STATES[:1], actions=[0, 1])
        only = Steps([1], np.uint8([TERMINATED | EXECUTED]), [0.0], (), (), [1])
        client.exchange(only)
    cut = TRUNCATED | FINAL | START | EXECUTED
    assert reported(server)[1:] == [
        ([EXECUTED] * 2, [1, 0]),
        ([cut, EXECUTED], [0, 1]),
        ([TERMINATED | EXECUTED], [1]),
    ]


def test_an_older_server_gets_no_executed_actions_and_is_named(start_recording_server):
    server = start_recording_server(greet=older)
    with Client(server.url) as client, VectorClient(server.url, 2) as many:
        client.init(STATE)
        many.init(STATES)
        for report in (
            lambda: client.send(0.0, STATE, action=1),
            lambda: client.reset(0.0, action=1),
            lambda: many.send(np.zeros(2), STATES, actions=[1, 1]),
        ):
            with pytest.raises(Failure, match="takes no executed actions") as refused:
                report()
            assert refused.value.code == ErrorCode.MISMATCH
            assert refused.value.is_final
        client.send(0.0, STATE)
    assert reported(server) == [([START], []), ([START] * 2, []), ([0], [])]


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize(
    ("action", "error", "reason"),
    [
        ("left", TypeError, "the executed action is the text 'left'"),
        ([[1], [1, 2]], TypeError, "the executed action is no array of numbers"),
        ({"left": 1}, TypeError, "the executed action is no array of numbers"),
        ([0.0, np.nan], ValueError, r"the executed action\[1\] is nan, it must be finite"),
    ],
)
def test_an_invalid_executed_action_is_not_sent(
    start_server, server, protocol, action, error, reason
):
    url = server.url if protocol == 2 else start_server().url
    with Client(url, protocol=protocol) as client:
        client.init([1, 2])
        for report in (client.send, client.truncate):
            with pytest.raises(error, match=reason):
                report(0.0, [1, 2], action=action)
        with pytest.raises(error, match=reason):
            client.reset(0.0, action=action)
        client.send(0.0, [1, 2])


def test_so_many_actions_are_not_sent(server):
    with VectorClient(server.url, 2) as client:
        client.init(STATES)
        with pytest.raises(ValueError, match=r"executed actions are 2 rows, not .* shape \[1\]"):
            client.send(np.zeros(2), STATES, actions=[1])


class Overruled(gymnasium.Env):
    """Executes 0 in each second step, as its info says, whatever it is given."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(3, start=5)

    def __init__(self, length=4, ending="terminated"):
        self.length, self.ending = length, ending

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return STATE, {"executed_action": self.action_space.start}

    def step(self, action):
        self.place += 1
        is_over = self.place == self.length
        ended = (is_over and self.ending == "terminated", is_over and self.ending == "truncated")
        executed = self.action_space.start if self.place % 2 == 0 else action
        return STATE, 0.0, *ended, {"executed_action": executed}


def test_a_runner_reports_the_executed_action_of_the_info_if_it_differs(server):
    with Client(server.url) as client:
        GymnasiumRunner(Overruled(), client).run(episodes=1)
        GymnasiumRunner(Overruled(2, "truncated"), client).run(episodes=1)
    assert reported(server) == [
        ([START], []),
        ([0], []),
        ([EXECUTED], [0]),
        ([0], []),
        ([TERMINATED | EXECUTED], [0]),
        ([START], []),
        ([0], []),
        ([TRUNCATED | FINAL | EXECUTED], [0]),
    ]


class Older(VectorWrapper):
    """Has ``final_info`` as an array of dicts, as Gymnasium had it before."""

    def step(self, actions):
        *outcome, infos = super().step(actions)
        if "final_info" in infos:
            ends = infos["final_info"]
            rows = zip(ends["executed_action"], ends["_executed_action"], strict=True)
            ends = [
                {"executed_action": action} if has_ended else None for action, has_ended in rows
            ]
            infos["final_info"] = np.array(ends, object)
        return *outcome, infos


@pytest.mark.parametrize("wrap", [lambda environments: environments, Older, DictInfoToList])
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_a_vector_runner_reports_it_for_the_step_that_it_was_executed_in(server, mode, wrap):
    """Also in an episode's last step, and never of the ``info`` of the next one's start."""
    environments = SyncVectorEnv(
        [lambda: Overruled(3), lambda: Overruled(2, "truncated")], autoreset_mode=mode
    )
    with VectorClient(server.url, 2) as client:
        VectorRunner(wrap(environments), client).run(episodes=3)
    # By environment: what each step executed, 1 where nothing is said.
    executed = [[], []]
    for steps in server.steps:
        actions = iter(np.asarray(steps.executed).tolist())
        for environment, flags in zip(steps.environments, steps.flags, strict=True):
            if flags != START:
                executed[environment].append(next(actions) if flags & EXECUTED else 1)
    first, second = executed
    assert first == [1, 0, 1, 1, 0, 1][: len(first)]
    assert second == [1, 0, 1, 0, 1, 0][: len(second)]
    assert min(len(first), len(second)) >= 3


class Reporting(gymnasium.Env):
    """Reports what it is made with; without that, nothing."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, action_space, executed):
        self.action_space = action_space
        self.info = {} if executed is None else {"executed_action": executed}

    def reset(self, *, seed=None, options=None):
        return STATE, {}

    def step(self, action):
        return STATE, 0.0, False, False, self.info


NESTED = spaces.Dict(
    {"grip": spaces.Discrete(2), "gears": spaces.Tuple([spaces.MultiDiscrete([3, 4])] * 2)}
)
ARM = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Box(0, 10, ())})


def one(space, executed, made, sent):
    return ExecutedActionReader(space).of_one({"executed_action": executed}, made, sent)


class TestActionsAreReadAsTheServerCounts:
    """By any space that an environment may have."""

    def test_choices_begin_at_0(self):
        assert one(spaces.Discrete(3, start=5), np.int64(7), 5, 0) == 2
        gears = one(spaces.MultiDiscrete([3, 2], start=[1, 1]), [3, 1], [1, 1], np.array([0, 0]))
        assert gears.tolist() == [2, 0]
        assert one(spaces.MultiBinary(2), [True, False], [0, 0], np.zeros(2, int)).tolist() == [
            1,
            0,
        ]

    def test_a_box_has_the_shape_and_type_that_the_server_sends(self):
        space, sent = spaces.Box(-2, 2, (2, 2), np.float64), np.zeros(4, np.float32)
        action = one(space, [[0.5, 1], [-2, 2]], np.zeros((2, 2)), sent)
        assert (action.tolist(), action.dtype) == ([0.5, 1, -2, 2], np.float32)

    def test_nested_ones_are_one_array(self):
        made = {"grip": 0, "gears": (np.array([0, 0]), np.array([0, 0]))}
        executed = {"grip": 1, "gears": ([2, 3], [0, 1])}
        sent = np.zeros(5, np.int64)
        assert one(NESTED, executed, made, sent).tolist() == [2, 3, 0, 1, 1]
        assert one(NESTED, made, made, sent) is None

    @pytest.mark.parametrize(
        ("space", "sent"),
        [
            (NESTED, np.zeros((4, 5), np.int64)),
            (ARM, np.zeros((4, 3), np.float32)),
            (spaces.Box(-1, 1, (3,)), np.zeros((4, 3), np.float32)),
            (spaces.Discrete(1000), np.zeros(4, np.int64)),
        ],
        ids=["nested", "numbers by name", "numbers", "choices"],
    )
    def test_executed_actions_of_many_environments_equal_those_of_each(self, space, sent):
        """As Gymnasium gathers them. One reports none, and one just what it was given."""
        space.seed(1)
        made = [space.sample() for _ in range(4)]
        executed = [space.sample(), None, space.sample(), made[3]]
        environments = SyncVectorEnv([partial(Reporting, space, each) for each in executed])
        environments.reset()
        together = concatenate(space, made, create_empty_array(space, 4))
        infos = environments.step(together)[-1]
        reader = ExecutedActionReader(space)
        who, actions = reader.of_many(infos, np.ones(4, np.bool_), together, sent)
        assert who.tolist() == [True, False, True, False]
        for place, action in zip((0, 2), actions, strict=True):
            alone = one(space, executed[place], made[place], sent[place])
            np.testing.assert_array_equal(action, alone)

    @pytest.mark.parametrize(
        ("space", "executed", "reason"),
        [
            (spaces.Discrete(3), 3, "holds 3, which is not of the space"),
            (spaces.Discrete(3), 1.0, "has dtype float64, and must be of int64"),
            (spaces.Discrete(3), True, "has dtype bool"),
            (spaces.Box(-1, 1, (2,)), [0, 1.5], "holds 1.5, which is not of the space"),
            (spaces.Box(-1, 1, (2,)), [0, np.nan], "holds nan, which is not of the space"),
            (spaces.Box(-1, 1, (2,)), [0], r"has shape \[1\], not \[2\]"),
            (spaces.Box(-1, 1, (2,)), ["0", "1"], "has dtype <U1"),
            (spaces.Box(0, 9, (1,), np.int64), [0.5], "has dtype float64"),
            (spaces.MultiBinary(2), [0, 2], "holds 2, which is not of the space"),
            (ARM, {"a": [0, 0]}, "cannot be read: KeyError.*'b'"),
            (ARM, [0, 0, 0], "cannot be read"),
        ],
    )
    def test_any_other_is_named(self, space, executed, reason):
        made = space.sample()
        with pytest.raises(ValueError, match=rf'info\["executed_action"\] of .*{reason}'):
            one(space, executed, made, np.zeros(3))
