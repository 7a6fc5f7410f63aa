"""Gymnasium's vector environments, driven through a ``VectorClient``."""

import gymnasium
import numpy as np
import pytest
from clock import Clock
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client import Backoff, VectorClient
from relaax.client.gymnasium_actions import UnusableAction
from relaax.client.gymnasium_spaces import UnsupportedSpace
from relaax.client.simulator import RunObserver, RunOutcome
from relaax.client.vector_runner import VectorRunner
from relaax.errors import ConfigurationError
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED


class Corridor(gymnasium.Env):
    """Counts its steps; is over after ``length`` of them, in the way that ``ending`` says."""

    observation_space = gymnasium.spaces.Box(0, 100, (1,), np.float32)

    def __init__(self, length, ending, action_space=None):
        self.length, self.ending = length, ending
        self.action_space = action_space or gymnasium.spaces.Discrete(2)
        self.actions = []

    def reset(self, *, seed=None, options=None):
        self.place = 0
        return np.float32([0]), {}

    def step(self, action):
        self.actions.append(action)
        self.place += 1
        is_over = self.place == self.length
        ended = (is_over and self.ending == "terminated", is_over and self.ending == "truncated")
        return np.float32([self.place]), self.place, *ended, {}


def corridors(mode, *kinds):
    return SyncVectorEnv([lambda kind=kind: Corridor(*kind) for kind in kinds], autoreset_mode=mode)


class Notes(RunObserver):
    def __init__(self):
        self.steps = 0
        self.returns = []

    def on_step(self, count=1):
        self.steps += count

    def on_episode(self, summary):
        self.returns.append((summary.episode_return, summary.length))


def test_environments_that_start_again_within_a_step(server):
    environments = corridors(AutoresetMode.SAME_STEP, (2, "terminated"), (3, "truncated"))
    notes = Notes()
    with VectorClient(server.url, 2) as client:
        result = VectorRunner(environments, client, observer=notes).run(episodes=2)
    assert result.outcome is RunOutcome.FINISHED
    assert server.told == [
        ([START, START], [0, 0], [0, 0], []),
        ([0, 0], [1, 1], [1, 1], []),
        ([TERMINATED | START, 0], [2, 2], [0, 2], []),
        ([0, TRUNCATED | FINAL | START], [1, 3], [1, 0], [3]),
    ]
    assert notes.returns == [(3.0, 2), (6.0, 3)]
    assert notes.steps == 6


def test_environments_that_take_a_step_to_start_again(server):
    environments = corridors(AutoresetMode.NEXT_STEP, (2, "terminated"), (3, "truncated"))
    notes = Notes()
    with VectorClient(server.url, 2) as client:
        VectorRunner(environments, client, observer=notes).run(episodes=3)
    assert server.told == [
        ([START, START], [0, 0], [0, 0], []),
        ([0, 0], [1, 1], [1, 1], []),
        ([TERMINATED, 0], [2, 2], [2], []),
        ([START, TRUNCATED | FINAL], [0, 3], [0], [3]),
        ([0, START], [1, 0], [1, 0], []),
        ([TERMINATED, 0], [2, 1], [1], []),
    ]
    assert notes.returns == [(3.0, 2), (6.0, 3), (3.0, 2)]
    assert notes.steps == 8


class Timed(Corridor):
    """Each step takes a quarter of a second of ``clock``."""

    def __init__(self, clock):
        super().__init__(3, "terminated")
        self.clock = clock

    def step(self, action):
        self.clock.now += 0.25
        return super().step(action)


def test_the_latency_of_actions_is_reported_once_a_second(server):
    clock = Clock()
    environments = SyncVectorEnv([lambda: Timed(clock)], autoreset_mode=AutoresetMode.SAME_STEP)
    with VectorClient(server.url, 1) as client:
        VectorRunner(environments, client, clock=clock).run(episodes=5)  # 3.75 s
        client.init(np.float32([[0]]))  # answered after the metrics were received
    assert [each.name for each in server.metrics] == ["act latency"] * 3
    assert all(each.y > 0 for each in server.metrics)


def test_environments_that_do_not_start_again_are_refused(server):
    environments = corridors(AutoresetMode.DISABLED, (2, "terminated"))
    with (
        VectorClient(server.url, 1) as client,
        pytest.raises(ConfigurationError, match="must start episodes by themselves"),
    ):
        VectorRunner(environments, client)


def test_an_action_that_does_not_fit_is_named(start_recording_server):
    server = start_recording_server(action=5)
    environments = corridors(AutoresetMode.SAME_STEP, (2, "terminated"))
    with (
        VectorClient(server.url, 1) as client,
        pytest.raises(UnusableAction, match="is from 0 to 1, the server sent 5"),
    ):
        VectorRunner(environments, client).run(episodes=1)


def test_after_a_lost_connection_all_environments_start_again(server, close):
    server.reply = lambda number, steps: close if len(server.steps) == 3 else None
    environments = corridors(AutoresetMode.SAME_STEP, (5, "terminated"), (5, "terminated"))
    with VectorClient(server.url, 2) as client:
        VectorRunner(environments, client).run(episodes=2)
    assert [flags for flags, *_ in server.told[:5]] == [
        [START] * 2,
        [0, 0],
        [0, 0],
        [START] * 2,
        [0, 0],
    ]
    assert len(server.hellos) == 2
    assert server.hellos[0].run_id == server.hellos[1].run_id


@pytest.mark.parametrize("ending", ["terminated", "truncated"])
@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_all_environments_may_end_in_one_step_with_continuous_actions(
    start_recording_server, mode, ending
):
    server = start_recording_server(action=np.float32([0.5, 2.0]))
    space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    environments = corridors(mode, *[(2, ending, space)] * 3)
    with VectorClient(server.url, 3) as client:
        result = VectorRunner(environments, client).run(episodes=6)
    assert result.outcome is RunOutcome.FINISHED
    for environment in environments.envs:
        assert all(action.tolist() == [0.5, 1.0] for action in environment.actions)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_no_more_episodes_are_counted_than_were_asked_for(server, mode):
    notes = Notes()
    with VectorClient(server.url, 4) as client:
        environments = corridors(mode, *[(2, "terminated")] * 4)
        result = VectorRunner(environments, client, observer=notes).run(episodes=6)
    assert len(notes.returns) == 6
    assert result.message == "6 episodes are over"


def test_observations_that_cannot_be_sent_are_refused_as_for_one_environment():
    class TwoSensors(Corridor):
        observation_space = gymnasium.spaces.Dict(
            {"place": Corridor.observation_space, "sign": gymnasium.spaces.Text(9)}
        )

    environments = SyncVectorEnv(
        [lambda: TwoSensors(2, "terminated")], autoreset_mode=AutoresetMode.SAME_STEP
    )
    with (
        VectorClient("localhost:1", 1) as client,
        pytest.raises(UnsupportedSpace, match=r"'sign'.*FlattenObservation"),
    ):
        VectorRunner(environments, client)


def test_states_that_are_refused_in_the_first_episodes_end_the_run(server):
    server.reply = lambda number, steps: (
        None if steps.flags[0] & START else binary.encode_error(ErrorCode.MISMATCH, "too few")
    )
    environments = corridors(AutoresetMode.SAME_STEP, (2, "terminated"))
    with VectorClient(server.url, 1, reconnect=Backoff()) as client:
        result = VectorRunner(environments, client).run()
    assert (result.outcome, server.accepted) == (RunOutcome.UNUSABLE, 1)
    assert "too few" in result.message


def test_a_server_that_fails_after_every_start_ends_the_run(server):
    server.reply = lambda number, steps: (
        None if steps.flags[0] & START else binary.encode_error(ErrorCode.SERVER, "no luck")
    )
    pauses = []
    backoff = Backoff(attempts=3, jitter=0)
    with VectorClient(server.url, 1, reconnect=backoff, wait=pauses.append) as client:
        environments = corridors(AutoresetMode.SAME_STEP, (5, "terminated"))
        result = VectorRunner(environments, client).run()
    assert (result.outcome, server.accepted) == (RunOutcome.SERVER_LOST, 3)
    assert pauses == [0.5, 1.0]
