"""Observations arrive in the type in which an environment returns them, however many share one."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client import Client, VectorClient
from relaax.client.gymnasium_tasks import GymnasiumRunner
from relaax.client.restarting_environments import RestartingEnvironments
from relaax.client.vector_runner import VectorRunner
from relaax.observations import arrays_in
from relaax.spaces import box, differ

MODES = (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP)


class Clock(gymnasium.Env):
    """Observes ``values`` one after the other, and is cut off at the last one."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, values):
        self.observation_space, self.values = space, values

    def seen(self):
        value = self.values[self.place]
        return {"a": value} if isinstance(self.observation_space, spaces.Dict) else value

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return self.seen(), {}

    def step(self, action):
        self.place += 1
        return self.seen(), 1.0, False, self.place == len(self.values) - 1, {}


def alone(server, *environments):
    with Client(server.url) as client:
        GymnasiumRunner(environments[0], client).run(episodes=1)


def in_one(mode, *environments):
    return SyncVectorEnv([lambda e=e: e for e in environments], autoreset_mode=mode)


def played(server, environments):
    with VectorClient(server.url, environments.num_envs) as client:
        VectorRunner(environments, client).run(episodes=environments.num_envs)


def restarting(server, *environments):
    names = [f"environment {number} (x)" for number in range(len(environments))]
    played(server, RestartingEnvironments(in_one(MODES[0], *environments), names))


def same_step(server, *environments):
    played(server, in_one(MODES[0], *environments))


def next_step(server, *environments):
    played(server, in_one(MODES[1], *environments))


WAYS = (alone, restarting, same_step, next_step)


def arrived(server):
    """All that the server was sent of the first environment, the last of an episode too."""
    found = []
    for steps in server.steps:
        for observations in (steps.finals, steps.observations):
            if len(observations):
                (array,) = arrays_in(observations)
                found.append(array[0])
    return found


UNIX_TIME = [np.float64([1_764_280_000 + 10 * t, 5_400_000 + 0.03 * t]) for t in range(4)]
BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)


@pytest.mark.parametrize("play", WAYS)
@pytest.mark.parametrize("space", [BOX, spaces.Dict({"a": BOX})])
def test_a_box_of_32_bits_cuts_nothing_off_from_64(server, play, space):
    play(server, Clock(space, UNIX_TIME), Clock(space, UNIX_TIME))
    found = arrived(server)
    assert {each.dtype for each in found} == {np.dtype(np.float64)}
    assert {tuple(each) for each in found} == {tuple(each) for each in UNIX_TIME}


@pytest.mark.parametrize("play", WAYS)
@pytest.mark.parametrize(
    ("said", "values", "type_sent"),
    [
        (np.uint8, [np.float32([0.5, 0.25])] * 3, np.float32),
        (np.uint8, [np.int64([0, 255])] * 3, np.uint8),
        (np.float32, [np.float32([0.5, 0.25])] * 3, np.float32),
        (np.float32, [[0.1, 0.2]] * 3, np.float64),
        (np.float32, [np.int64([1_764_280_010, 1])] * 3, np.float64),
    ],
)
def test_the_types_that_arrive_are_the_same_however_many_share_a_connection(
    server, play, said, values, type_sent
):
    space = spaces.Box(0, 200, (2,), said)
    play(server, Clock(space, values), Clock(space, values))
    found = arrived(server)
    assert {each.dtype for each in found} == {np.dtype(type_sent)}
    assert {tuple(each) for each in found} == {tuple(np.asarray(values[0]))}


@pytest.mark.parametrize("play", WAYS[1:])
@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (np.float64([0.5, 0.5]), "the observation is of float64, and before one was of bytes"),
        (np.uint8([1, 2, 3]), r"the observation has shape \[3\], and its space is Box"),
    ],
)
def test_observations_that_cannot_lie_in_one_array_are_refused_by_name(server, play, odd, message):
    space, usual = spaces.Box(0, 255, (2,), np.uint8), np.uint8([1, 2])
    with pytest.raises(ValueError, match=rf"environment 1( \(x\))?: {message}"):
        play(server, Clock(space, [usual] * 3), Clock(space, [odd] * 3))


@pytest.mark.parametrize("announced", ["float32", "float64"])
@pytest.mark.parametrize("expected", ["float32", "float64"])
def test_a_server_accepts_any_announced_size_of_floats(announced, expected):
    assert not differ(box(announced, (2,)), box(expected, (2,)))
