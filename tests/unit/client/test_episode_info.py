"""The numbers that environments give of their episodes: ``info["episode_info"]``."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from race_environment import ParallelRace, TurnRace

from relaax.client import Client, MultiAgentClient, VectorClient
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.multi_agent_runner import MultiAgentRunner
from relaax.client.pettingzoo_environments import ParallelEnvironment, TurnEnvironment
from relaax.client.restarting_environments import restarting
from relaax.client.simulator import RunObserver
from relaax.client.vector_runner import VectorRunner
from relaax.protocol import binary
from relaax.protocol.binary import Metric, Welcome
from relaax.steps import ENDED


class Match(gymnasium.Env):
    """Two steps an episode; each has ``info``, and that of the first one does not count."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, info, is_cut_off=False):
        self.info, self.is_cut_off = info, is_cut_off

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.float32([0]), {}

    def step(self, action):
        self.steps += 1
        if self.steps == 1:
            return np.float32([1]), 1.0, False, False, {"episode_info": {"won": 7}}
        ends = (not self.is_cut_off, self.is_cut_off)
        return np.float32([2]), 1.0, *ends, {"episode_info": self.info}


class Doubts(RunObserver):
    def __init__(self):
        self.said = []

    def on_doubt(self, message):
        self.said.append(message)


@pytest.fixture(name="play")
def _play(server):
    """Plays episodes; returns the metrics of episodes' own numbers that the server got."""

    def play(info, episodes=1, is_cut_off=False, observer=None):
        with Client(server.url) as client:
            GymnasiumRunner(Match(info, is_cut_off), client, observer=observer).run(episodes)
        return own(server.metrics)

    return play


def own(metrics):
    return [metric for metric in metrics if metric.name.startswith("episode_info/")]


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_those_of_the_last_step_are_sent(play, is_cut_off):
    numbers = {"won": True, "kills_2": np.int64(3), "rate": np.array([0.5], np.float32)}
    assert play(numbers, 1, is_cut_off) == [
        Metric("episode_info/won", 1.0, 0.0),
        Metric("episode_info/kills_2", 3.0, 0.0),
        Metric("episode_info/rate", 0.5, 0.0),
    ]


def test_those_that_cannot_be_used_are_left_out_and_named_once(play):
    doubts = Doubts()
    numbers = {
        "won": 1,
        "win rate": 1,
        "_hidden": 1,
        "episode_return": 1,
        "nan": float("nan"),
        "text": "much",
        "many": [1, 2],
        3: 1,
    }
    assert play(numbers, episodes=2, observer=doubts) == [Metric("episode_info/won", 1.0, 0.0)] * 2
    keys = [repr(key) for key in numbers if key != "won"]
    assert len(doubts.said) == len(keys)
    for key, said in zip(keys, doubts.said, strict=True):
        assert said.startswith(f"info['episode_info'][{key}] is left out: ")


def test_something_else_than_a_dict_is_named(play):
    doubts = Doubts()
    assert play(0.5, observer=doubts) == []
    assert doubts.said == ["info['episode_info'] is no dict of numbers by name, but 0.5"]


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("wrap", [lambda made: made, "again", AsyncVectorEnv])
def test_each_environment_of_a_connection_has_its_own(server, mode, wrap):
    infos = [{"won": 1}, {}, {"won": 0.5, "more": 2}]
    makers = [lambda info=info: Match(info) for info in infos]
    if wrap is AsyncVectorEnv:
        infos[0]["won"] = 1.0  # Gymnasium gathers them in another process
        environments = AsyncVectorEnv(makers, autoreset_mode=mode)
    else:
        environments = SyncVectorEnv(makers, autoreset_mode=mode)
    if wrap == "again":
        environments = restarting(environments, "abc", lambda *of: None, RunObserver())
    with VectorClient(server.url, 3) as client:
        VectorRunner(environments, client).run(3)
    environments.close()
    assert own(server.metrics) == [
        Metric("episode_info/won", 1.0, 0.0),
        Metric("episode_info/won", 0.5, 2.0),
        Metric("episode_info/more", 2.0, 2.0),
    ]


class Judged:
    """A race whose infos say who of both has won."""

    def info(self, agent):
        return {"episode_info": {"won": agent == "left"}} if self.is_over(agent) else {}


class JudgedTurns(Judged, TurnRace):
    def last(self):
        return *super().last()[:4], self.info(self.agent_selection)


class JudgedAtOnce(Judged, ParallelRace):
    def step(self, actions):
        return *super().step(actions)[:4], {agent: self.info(agent) for agent in actions}


@pytest.mark.parametrize(
    "environment",
    [
        lambda: TurnEnvironment(JudgedTurns(), None),
        lambda: ParallelEnvironment(JudgedAtOnce(), None),
    ],
)
def test_each_agent_has_its_own(start_recording_server, environment):
    greeting = binary.encode_welcome(Welcome(agents=True))
    server = start_recording_server(action=0, greet=lambda number: greeting)
    with MultiAgentClient(server.url, ["left", "right"], 2) as client:
        MultiAgentRunner([environment(), environment()], client).run(2)
    assert sorted(own(server.metrics), key=lambda metric: metric.x) == [
        Metric("episode_info/won", float(number % 2 == 0), float(number)) for number in range(4)
    ]
    assert sum(int(np.count_nonzero(steps.flags & ENDED)) for steps in server.steps) == 4
