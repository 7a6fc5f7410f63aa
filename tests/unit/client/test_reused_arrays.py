"""Environments that fill one array again and again, and return it from ``reset`` and ``step``."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import FrameStackObservation, TransformObservation
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from relaax.client import Client, VectorClient
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.restarting_environments import RestartingEnvironments
from relaax.client.simulator import RunOutcome
from relaax.client.vector_runner import VectorRunner
from relaax.errors import ConfigurationError
from relaax.observations import arrays_in
from relaax.steps import FINAL, TRUNCATED, Steps

SHAPES = {"box": (2,), "image": (4, 3, 3)}
LIMIT, START, MODES = 5, -7, (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP)


class Reused(gymnasium.Env):
    """Its states are 1 to 5, where it is cut off; it starts at -7."""

    action_space = spaces.Discrete(2)

    def __init__(self, kind="box"):
        shape = SHAPES.get(kind, (2,))
        box = spaces.Box(-9, 9, shape, np.int16 if kind == "image" else np.float32)
        self.buffer = np.zeros(shape, box.dtype)
        spaces_of = {"dict": spaces.Dict({"a": box}), "tuple": spaces.Tuple([box])}
        self.observation_space = spaces_of.get(kind, box)
        self.seen = {"dict": {"a": self.buffer}, "tuple": (self.buffer,)}.get(kind, self.buffer)

    def reset(self, *, seed=None, options=None):
        self.place = 0
        self.buffer[...] = START
        return self.seen, {}

    def step(self, action):
        self.place += 1
        self.buffer[...] = self.place
        return self.seen, 1.0, False, self.place == LIMIT, {}


class Fresh(Reused):
    def reset(self, *, seed=None, options=None):
        return super().reset()[0].copy(), {}

    def step(self, action):
        observation, *others = super().step(action)
        return observation.copy(), *others


KINDS = ["box", "dict", "tuple", "image"]


def played(environments, server, episodes):
    with VectorClient(server.url, environments.num_envs) as client:
        result = VectorRunner(environments, client).run(episodes)
    environments.close()
    return result


def numbers(observations):
    """The first number of each row."""
    (array,) = arrays_in(observations) if len(observations) else ((),)
    return [row.reshape(-1)[0] for row in array]


def seen_in_the_first_environment(steps: list[Steps]):
    """States where it acts, and the last ones of its episodes."""
    acting = [numbers(each.observations)[0] for each in steps if each.acting[0]]
    finals = [numbers(each.finals)[0] for each in steps if each.flags[0] & FINAL]
    return acting, finals


@pytest.mark.parametrize("kind", KINDS)
def test_an_environment_on_its_own_connection_ends_where_it_was_cut_off(server, kind):
    with Client(server.url) as client:
        GymnasiumRunner(Reused(kind), client).run(episodes=2)
    assert seen_in_the_first_environment(server.steps) == ([START, 1, 2, 3, 4] * 2, [5, 5])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_many_on_a_connection_end_where_they_were_cut_off(server, kind, mode):
    environments = SyncVectorEnv([lambda: Reused(kind)] * 2, autoreset_mode=mode)
    played(RecordEpisodeStatistics(environments), server, episodes=4)
    acting, finals = seen_in_the_first_environment(server.steps)
    assert (acting[:10], finals) == ([START, 1, 2, 3, 4] * 2, [5, 5])
    assert all(set(numbers(each.finals)) <= {5} for each in server.steps)


def test_environments_that_share_an_array_are_told_apart(server):
    buffer = np.zeros(2, np.float32)

    def shared(start):
        environment = Reused()
        environment.buffer = environment.seen = buffer
        environment.place, environment.step = start, lambda _: (buffer, 1.0, False, True, {})
        environment.reset = lambda **_: (np.copyto(buffer, start), (buffer, {}))[1]
        return environment

    played(
        SyncVectorEnv([lambda: shared(1), lambda: shared(2)], autoreset_mode=MODES[1]), server, 2
    )
    assert numbers(server.steps[0].observations) == [1, 2]


def stacked(environment):
    return FrameStackObservation(environment, 2)


@pytest.mark.parametrize("mode", MODES)
def test_frames_that_are_stacked_are_of_different_times(server, mode):
    environments = SyncVectorEnv([lambda: stacked(Reused())], autoreset_mode=mode)
    played(environments, server, episodes=2)
    (final, *_) = [each.finals[0, :, 0].tolist() for each in server.steps if len(each.finals)]
    assert final == [4, 5]
    assert server.steps[1].observations[0, :, 0].tolist() == [START, 1]


def test_a_wrapper_may_fill_one_array_too(server):
    buffer = np.zeros(2, np.float32)

    def doubled():
        return TransformObservation(
            Reused(), lambda seen: np.multiply(seen, 2, out=buffer), Reused().observation_space
        )

    with Client(server.url) as client:
        GymnasiumRunner(stacked(doubled()), client).run(episodes=1)
    assert server.steps[-1].finals[0, :, 0].tolist() == [8, 10]


def test_a_second_run_changes_an_environment_no_further(server):
    environment = Reused()
    with Client(server.url) as client:
        GymnasiumRunner(environment, client).run(episodes=1)
        step = environment.step
        GymnasiumRunner(environment, client).run(episodes=1)
    assert environment.step is step


@pytest.mark.parametrize("kind", ["box", "dict"])
@pytest.mark.parametrize("shared_memory", [True, False])
def test_processes_that_start_in_the_next_step_need_no_copies(server, kind, shared_memory):
    environments = AsyncVectorEnv(
        [lambda: Reused(kind)] * 2, shared_memory=shared_memory, autoreset_mode=MODES[1]
    )
    played(environments, server, episodes=2)
    assert seen_in_the_first_environment(server.steps) == ([START, 1, 2, 3, 4], [5])


def test_processes_that_lose_the_final_observation_are_refused_by_name(server, caplog):
    environments = AsyncVectorEnv([Fresh, Reused], autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(
        ConfigurationError,
        match=r"final_obs'\] of environment 1 is the first .*, 10 times.*copies. Or .*NEXT_STEP",
    ):
        played(environments, server, episodes=99)
    environments.close()
    (warning,) = caplog.messages
    assert "environment 1 is the first observation of the next episode: if" in warning


class Returning(Reused):
    """Starts at 0 and observes ``way``; at the end of it the episode is cut off."""

    def __init__(self, *ways):
        super().__init__()
        self.ways = itertools.cycle(ways)

    def reset(self, *, seed=None, options=None):
        self.way = iter(next(self.ways))
        return np.zeros(2, np.float32), {}

    def step(self, action):
        place = next(self.way)
        return np.full(2, place, np.float32), 1.0, False, place in (0, 9), {}


@pytest.mark.parametrize(
    "ways",
    [[[0]], [[1, 2, 0], [1, 2, 9]], [[1, 9], *[[1, 0]] * 12]],
    ids=["bandit", "lake", "home"],
)
def test_episodes_of_processes_may_end_where_they_begin(server, ways):
    environments = AsyncVectorEnv(
        [lambda: Returning(*ways)] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert played(environments, server, episodes=40).outcome is RunOutcome.FINISHED


def test_processes_that_keep_the_final_observation_are_played(server):
    environments = AsyncVectorEnv([Fresh] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    assert played(environments, server, episodes=2).outcome is RunOutcome.FINISHED
    assert seen_in_the_first_environment(server.steps)[1] == [5]


class Batched(VectorEnv):
    """A vector environment of its own; ``info`` says what it says of an end."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's way

    def __init__(self, info, convert=lambda observations: observations):
        self.num_envs, self.info, self.convert = 2, info, convert
        self.single_observation_space = spaces.Dict({"a": Reused().observation_space})
        self.single_action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return {"a": self.convert(np.full((2, 2), START, np.float32))}, {}

    def step(self, actions):
        return self.reset()[0], np.ones((2, 1)), [False] * 2, np.array([False, True]), self.info


FINALS = {"a": np.full((2, 2), 5, np.float32)}


@pytest.mark.parametrize(
    "info",
    [
        {"final_obs": FINALS},
        {"final_observation": FINALS},
        {"final_obs": np.array([None, {"a": FINALS["a"][1]}])},
        {"final_obs": [None, {"a": FINALS["a"][1]}]},
    ],
)
def test_final_observations_are_found_by_either_name_and_in_either_form(server, info):
    played(Batched(info), server, episodes=1)
    assert numbers(server.steps[1].finals) == [5]
    assert server.steps[1].flags[1] & TRUNCATED


@pytest.mark.parametrize("info", [{}, {"final_obs": np.array([{"a": None}, None])}])
def test_a_truncated_episode_without_its_final_observation_is_refused(server, info):
    message = r"environment 1 was cut off, and there is no info\['final_obs'\].*NEXT_STEP"
    with pytest.raises(ConfigurationError, match=message):
        played(Batched(info), server, episodes=1)


class Tensor:
    """An array of another library."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("kind", [Tensor, type("Opaque", (), {"__init__": lambda self, _: None})])
def test_tensors_of_another_library_are_refused_with_the_name_of_a_converter(server, kind):
    with pytest.raises(ConfigurationError, match=f"{kind.__name__}, and not numpy's.*Conversion"):
        played(Batched({}, kind), server, episodes=1)
    assert not server.steps


class Odd(Reused):
    def __init__(self, observation=None, reward=1.0):
        super().__init__()
        self.observation, self.reward = observation, reward

    def step(self, action):
        observation, _, *others = super().step(action)
        return observation if self.observation is None else self.observation, self.reward, *others


def both_kinds_of_runners(server, environment, episodes=1):
    """Play ``environment`` alone, and behind another one on a connection of both."""

    def alone():
        with Client(server.url) as client:
            GymnasiumRunner(environment(), client).run(episodes)

    return alone, lambda: played(SyncVectorEnv([Reused, environment]), server, episodes)


@pytest.mark.parametrize("reward", [np.ones(1), np.float16(1), np.ones((1, 1), np.float32), [1], 1])
def test_a_reward_is_one_number_in_both_kinds_of_runners(server, reward):
    for play in both_kinds_of_runners(server, lambda: Odd(reward=reward)):
        play()
    assert all(set(each.rewards) <= {0, 1} for each in server.steps)
    assert sum(each.rewards[-1] for each in server.steps) == 2 * LIMIT


class Flagged(Reused):
    """Says whether an episode has ended in the form that ``as_flag`` returns."""

    def __init__(self, as_flag):
        super().__init__()
        self.as_flag = as_flag

    def step(self, action):
        observation, reward, *ended, info = super().step(action)
        return observation, reward, *map(self.as_flag, ended), info


WAYS = (
    lambda environments: environments,
    lambda environments: RestartingEnvironments(environments, ["environment 0", "environment 1"]),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "as_flag",
    [
        lambda flag: np.array([flag]),
        lambda flag: [[int(flag)]],
        np.float32,
        lambda flag: flag or None,
    ],
)
def test_a_flag_is_one_truth_value_however_many_share_a_connection(server, way, as_flag):
    with Client(server.url) as client:
        GymnasiumRunner(Flagged(as_flag), client).run(episodes=1)
    alone = seen_in_the_first_environment(server.steps)
    del server.steps[:]
    both = SyncVectorEnv([lambda: Flagged(as_flag)] * 2, autoreset_mode=MODES[0])
    played(way(both), server, 2)
    acting, finals = seen_in_the_first_environment(server.steps)
    assert (acting[:LIMIT], finals) == alone == ([START, 1, 2, 3, 4], [5])


def test_any_other_flag_is_refused_by_name_in_all_runners(server):
    def odd():
        return Flagged(lambda flag: np.array([flag, flag]))

    both = SyncVectorEnv([Reused, odd], autoreset_mode=MODES[0])
    with Client(server.url) as client, pytest.raises(TypeError, match=r"^terminated is .*true or"):
        GymnasiumRunner(odd(), client).run(1)
    for way in WAYS:
        with pytest.raises(TypeError, match=r"environment 1: terminated is array\(\[False, False"):
            played(way(both), server, 1)


@pytest.mark.parametrize("reward", [np.ones(2), 1j, "1", None])
def test_any_other_reward_is_refused_by_name_in_both_kinds_of_runners(server, reward):
    alone, together = both_kinds_of_runners(server, lambda: Odd(reward=reward))
    with pytest.raises(TypeError, match=r"the reward is .*, it must be a number"):
        alone()
    with pytest.raises(TypeError, match=r"environment 1: the reward is .*, it must be a number"):
        together()


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "the observation has masked values"),
        ([1.0, None], r"the observation\[1\] is None"),
        ([[1.0], [2.0, 3.0]], r"the observation\[1\] has the shape \[2\]"),
    ],
)
def test_unsendable_observations_are_refused_by_name_in_both_kinds_of_runners(
    server, observation, message
):
    alone, together = both_kinds_of_runners(server, lambda: Odd(observation))
    with pytest.raises(TypeError, match=message):
        alone()
    with pytest.raises(TypeError, match=f"environment 1: .*{message}"):
        together()
