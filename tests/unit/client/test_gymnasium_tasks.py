"""What an environment process does, done in this one; and the factories that it is given."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client.gymnasium_factory import GymnasiumFactory
from relaax.client.gymnasium_runner import run_command
from relaax.client.gymnasium_tasks import SingleEnvironmentTask, VectorEnvironmentsTask
from relaax.client.run_options import parse_options
from relaax.client.simulator import RunObserver, RunOutcome
from relaax.errors import ConfigurationError

REQUIRED = ("--env", "CartPole-v1", "--rlx-server")


WORDS = "text_environment:Words-v0"


class Returns(RunObserver):
    """Keeps the returns of the episodes."""

    def __init__(self):
        self.returns = []

    def on_episode(self, summary):
        self.returns.append(summary.episode_return)


def single(options, env_id="CartPole-v1"):
    return SingleEnvironmentTask(options, GymnasiumFactory(env_id, {}))


def several(options, env_id="CartPole-v1"):
    return VectorEnvironmentsTask(options, GymnasiumFactory(env_id, {}))


def first_observations(count, seed):
    environments = GymnasiumFactory("CartPole-v1", {}).vector(count)
    observations, _ = environments.reset(seed=seed)
    environments.close()
    return observations


def test_gymnasiums_own_vector_environment_is_taken_where_there_is_one():
    environments = GymnasiumFactory("CartPole-v1", {}).vector(3)
    assert type(environments.unwrapped).__name__ == "CartPoleVectorEnv"
    assert environments.num_envs == 3
    environments.close()


def test_all_others_are_stepped_one_after_the_other():
    environments = GymnasiumFactory("MountainCar-v0", {}).vector(2)
    assert isinstance(environments, SyncVectorEnv)
    assert environments.num_envs == 2
    assert environments.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    environments.close()


@pytest.mark.parametrize(
    ("task", "per_connection", "environments", "episodes", "first"),
    [(single, "1", 1, 2, 1), (several, "3", 2, 4, 3)],
)
def test_a_process_has_its_part_of_the_environments_the_seeds_and_the_episodes(
    server, task, per_connection, environments, episodes, first
):
    arguments = ("--count", "5", "--episodes", "10", "--seed", "7")
    options = parse_options([*REQUIRED, server.url, *arguments, "--per-connection", per_connection])
    notes = Returns()
    result = task(options)(1, notes)
    assert (result.outcome, len(notes.returns)) == (RunOutcome.FINISHED, episodes)
    (hello,) = server.hellos
    assert (hello.environment, hello.environments) == ("CartPole-v1", environments)
    assert (hello.observation_space["shape"], hello.action_space["n"]) == ([4], 2)
    expected = first_observations(environments, options.seeds.of(first))
    np.testing.assert_array_equal(server.steps[0].observations, expected)


@pytest.mark.parametrize("task", [single, several])
def test_an_environment_that_cannot_be_made_or_used_is_named(server, task):
    options = parse_options([*REQUIRED, server.url, "--per-connection", "2"])
    for env_id, message in (("NoSuchThing-v1", "NoSuchThing"), (WORDS, "Flatten")):
        with pytest.raises(ConfigurationError, match=rf"^CartPole-v1: .*{message}"):
            task(options, env_id)(0, Returns())
    assert server.accepted == 0


def test_options_that_do_not_fit_together_are_named(capsys, tmp_path):
    several = [*REQUIRED, "localhost:1", "--per-connection", "2"]
    assert run_command(parse_options(several), lambda: gymnasium.make("CartPole-v1")) == 2
    assert "needs a factory with a method 'vector'" in capsys.readouterr().err
    options = parse_options([*several, "--record-video", str(tmp_path)])
    assert run_command(options, GymnasiumFactory("CartPole-v1", {})) == 2
    assert capsys.readouterr().err == "--record-video needs --per-connection 1\n"
