"""The stage of a curriculum reaches environments in their resets, and their episodes name it."""

from contextlib import ExitStack, closing

import gymnasium
import numpy as np
import pytest
from client_servers import server, start_recording_server
from processes import free_port
from race_environment import ParallelRace, TurnRace

from relaax.algorithm_base import NullMetrics
from relaax.client import Client, MultiAgentClient
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.multi_agent_runner import MultiAgentRunner
from relaax.client.pettingzoo_environments import ParallelEnvironment, TurnEnvironment
from relaax.errors import ConfigurationError
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters
from relaax.parameters.stage import Stage
from relaax.protocol import binary
from relaax.protocol.binary import Welcome
from relaax.server.actor.stages import StagedAgents, StagedEnvironment, stage_source

__all__ = ["server", "start_recording_server"]  # fixtures

STAGES = (Stage(0, "near"), Stage(2, "far"))


class Field(gymnasium.Env):
    """One step an episode."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.options = []

    def reset(self, *, seed=None, options=None):
        self.options.append(options)
        return np.float32([0]), {}

    def step(self, action):
        return np.float32([1]), 1.0, True, False, {"episode_info": {"won": 1}}


def test_each_episode_has_the_stage_of_its_beginning(server):
    field, stages = Field(), iter(STAGES)
    with Client(server.url) as client:
        environment = StagedEnvironment(field, lambda: next(stages))
        GymnasiumRunner(environment, client).run(2)
    assert field.options == [{"stage": "near"}, {"stage": "far"}]
    numbers = [(m.name, m.y) for m in server.metrics if m.name.startswith("episode_info/")]
    assert numbers == [
        ("episode_info/won", 1.0), ("episode_info/#stage", 0.0),
        ("episode_info/won", 1.0), ("episode_info/#stage", 2.0),
    ]  # fmt: skip


class Noting:
    """A race that notes its options."""

    def reset(self, seed=None, options=None):
        self.options = [*getattr(self, "options", []), options]
        return super().reset(seed)


class NotingTurns(Noting, TurnRace):
    pass


class NotingAtOnce(Noting, ParallelRace):
    pass


@pytest.mark.parametrize(
    ("race", "interface"), [(NotingTurns, TurnEnvironment), (NotingAtOnce, ParallelEnvironment)]
)
def test_each_agents_episode_has_the_stage_of_its_game(start_recording_server, race, interface):
    greeting = binary.encode_welcome(Welcome(agents=True))
    recording = start_recording_server(action=0, greet=lambda number: greeting)
    made, stages = race(), iter([*STAGES, STAGES[1]])
    environment = StagedAgents(interface(made, None), lambda: next(stages))
    with MultiAgentClient(recording.url, ["left", "right"]) as client:
        MultiAgentRunner([environment], client).run(2)
    assert made.options[:2] == [{"stage": "near"}, {"stage": "far"}]
    told = [(m.name, m.y, m.x) for m in recording.metrics if m.name.startswith("episode_info/")]
    by_agent = {agent: [y for _, y, x in told if x == agent] for agent in (0.0, 1.0)}
    assert by_agent == {0.0: [0.0, 2.0], 1.0: [0.0, 2.0]}


@pytest.fixture(name="served")
def _served():
    """A parameter server whose stage a test sets; its address."""
    address = f"127.0.0.1:{free_port()}"
    stages = [None]
    service = ParameterService(PublishedParameters(np.zeros(1, np.float32)), NullMetrics())
    control = BridgeControl(stage=lambda: stages[0])
    running = control.start_parameter_server(address, service)
    yield address, stages
    running.stop(0)


def test_the_stage_is_that_of_the_parameter_server(served):
    address, stages = served
    stages[0] = STAGES[1]
    with closing(Bridge(address)) as bridge:
        assert bridge.stage() == Stage(2, "far")
    with ExitStack() as resources:
        stage = stage_source(address, resources)
        assert stage() == Stage(2, "far")
        stages[0] = Stage(3, "further")
        while stage() != Stage(3, "further"):
            pass


def test_a_policy_without_a_curriculum_is_named(served):
    address, _ = served
    with ExitStack() as resources:
        stage = stage_source(address, resources)
        with pytest.raises(ConfigurationError, match=f"{address} has no curriculum"):
            stage()
