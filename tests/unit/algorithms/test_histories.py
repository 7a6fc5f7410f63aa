"""What is learnt from is what was acted on: stacks of the latest states, each stored once."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.assembly.off_policy import TABLE
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of
from relaax.observations import mapped
from relaax.replay.step_batch import StepBatch
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

LENGTH = 3
#: Steps of each episode of both environments, and how it ends.
EPISODES = ((5, TERMINATED), (4, TRUNCATED), (1, TERMINATED), (2, TRUNCATED), (6, TERMINATED))

IMAGE = (20, 20)
SECTION = {"hidden_layers": [8], "seed": 1, "history_len": LENGTH, "updates_per_step": None}
DISCRETE = {**SECTION, "learning_starts": 1, "action_size": 2}
CONTINUOUS = {**SECTION, "learning_starts": 1, "action_size": 1, "action_low": -2, "action_high": 2}

CASES = {
    "vectors of SAC": ("sac", {**CONTINUOUS, "state_size": [2]}),
    "vectors of DDPG": ("ddpg", {**CONTINUOUS, "state_size": [2]}),
    "images of DQN": ("dqn", {**DISCRETE, "state_size": list(IMAGE)}),
    "both by name": ("dqn", {**DISCRETE, "state_size": {"eye": list(IMAGE), "speed": [1]}}),
}

#: Rows of a rollout, and how many rollouts of both environments are followed by a row.
ROWS, ROLLOUTS_THERE = 4, 8
ROLLOUTS_OF = {
    "hidden_layers": [8], "seed": 1, "history_len": LENGTH, "action_size": 2, "episode_len": ROWS
}  # fmt: skip
ON_POLICY = {
    "images of PPO": (
        "ppo",
        {
            **ROLLOUTS_OF,
            "rollouts_per_batch": ROLLOUTS_THERE,
            "minibatches": 1,
            "state_size": list(IMAGE),
        },
    ),
    "images of ACER": (
        "acer",
        {
            **ROLLOUTS_OF,
            "rollouts_per_update": ROLLOUTS_THERE,
            "state_size": list(IMAGE),
            "replay_ratio": 0,
        },
    ),
    "both by name, of TRPO": (
        "trpo",
        {
            **ROLLOUTS_OF,
            "state_size": {"eye": list(IMAGE), "speed": [1]},
            "filter_states": False,
            "rollouts_per_batch": ROLLOUTS_THERE,
            "value_minibatches": 1,
        },
    ),
}


def state(number, environment, size):
    """A state in which each part has a number of its own, and no two states are the same."""
    if isinstance(size, dict):
        return {name: state(number, environment, part) for name, part in size.items()}
    value = 100 * environment + number
    if len(size) == len(IMAGE):
        picture = np.arange(np.prod(size)).reshape(size) % 50
        return (picture + value).astype(np.uint8)
    return np.arange(size[0]) / 8 + np.float32(value)


def both(number, size):
    """The states of two environments at once."""
    return mapped(lambda *parts: np.stack(parts), *(state(number, e, size) for e in (0, 1)))


def widened(part):
    """A state as it is stacked: pictures have an axis for that."""
    return part[..., np.newaxis] if part.ndim == len(IMAGE) else part


def stack_of(numbers, environment, size):
    """What a network sees after the states of these numbers."""
    seen = [numbers[0]] * LENGTH + list(numbers)
    states = [state(number, environment, size) for number in seen[-LENGTH:]]
    return mapped(lambda *parts: np.concatenate([widened(p) for p in parts], axis=-1), *states)


def play(agent, size):
    """Play all episodes in two environments; return the stacks before and behind each action."""
    driven = Driven(agent)
    slots = driven.open(2)
    expected, number, flag = [], 0, START
    none = mapped(lambda part: part[:0], both(0, size))
    finals = none
    for steps, end in EPISODES:
        numbers = list(range(number, number + steps + 1))
        for place in range(steps):
            states = both(numbers[place], size)
            reward = np.zeros(2) if number + place == 0 else np.full(2, 1.0)
            driven.act(Steps(slots, np.full(2, flag, np.uint8), reward, states, finals))
            finals, flag = none, 0
            is_end = end == TERMINATED and place == steps - 1
            expected += [
                (
                    stack_of(numbers[: place + 1], environment, size),
                    None if is_end else stack_of(numbers[: place + 2], environment, size),
                )
                for environment in (0, 1)
            ]
        number += steps + 1
        flag = START | end
        if end == TRUNCATED:
            flag |= FINAL
            finals = both(numbers[-1], size)
    driven.act(Steps(slots, np.full(2, TERMINATED, np.uint8), np.ones(2), none, none))
    driven.close_slots(slots)
    return expected


def stored(batches, spec):
    """A replay with all steps."""
    replay = spec.make(np.random.default_rng(1), 60.0)
    replay.open_writer("worker", spec.schema)
    steps = StepBatch.concatenated(batches)
    for slot in np.unique(steps.slots):
        mine = steps.chosen(steps.slots == slot)
        replay.append(
            "worker",
            int(slot),
            0,
            {name: mine.columns[name] for name in replay.schema.columns},
            mine.flags,
        )
    return replay


def bytes_of(observation):
    """What is the same for equal observations alone."""
    if isinstance(observation, dict):
        return tuple(bytes_of(observation[name]) for name in sorted(observation))
    return np.asarray(observation, np.float32).tobytes()


@pytest.mark.parametrize(("name", "section"), CASES.values(), ids=CASES)
def test_a_batch_has_the_stacks_that_were_acted_on(name, section):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config(section)
    kept = Kept()
    bridge = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    with closing(algorithm.make_batch_agent(config, bridge, 1, False, experience=kept)) as agent:
        expected = play(agent, config.settings.state_size)
    replay = stored(kept.rollouts, algorithm.replay_spec(config))
    with closing(algorithm.make_learner(config, 1)) as learner:
        prepare = learner.inputs[TABLE].prepare
        batch = prepare(replay.sample(TABLE, 2000, 0.0))
        (_,) = learner.steps({TABLE: prepare(replay.sample(TABLE, 8, 0.0))})  # the network takes it
    follows = {bytes_of(before): after for before, after in expected}
    found = set()
    for row in range(2000):
        before = mapped(lambda part, row=row: part[row], batch.observations)
        behind = mapped(lambda part, row=row: part[row], batch.next_observations)
        found.add(bytes_of(before))
        after = follows[bytes_of(before)]
        assert (after is None) == (batch.discounts[row] == 0)
        assert after is None or bytes_of(after) == bytes_of(behind)
    assert found == set(follows)


@pytest.mark.parametrize(("name", "section"), ON_POLICY.values(), ids=ON_POLICY)
def test_a_rollout_has_the_stacks_that_were_acted_on(name, section):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config(section)
    kept = Kept()
    bridge = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    with closing(algorithm.make_batch_agent(config, bridge, 1, False, experience=kept)) as agent:
        expected = {bytes_of(before) for before, _ in play(agent, config.settings.state_size)}
    replay = stored(kept.rollouts, algorithm.replay_spec(config))
    batch = rollouts_of(replay.sample(ROLLOUTS, ROLLOUTS_THERE, 0.0))
    found = {
        bytes_of(mapped(lambda part, at=tuple(place): part[at], batch.observations))
        for place in np.argwhere(batch.valid)
    }
    assert len(found) == batch.steps > 0
    assert found <= expected


@pytest.mark.parametrize(
    ("name", "section"), [*CASES.values(), *ON_POLICY.values()], ids=[*CASES, *ON_POLICY]
)
def test_of_each_step_one_state_is_stored(name, section):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config(section)
    columns = algorithm.replay_spec(config).schema.columns
    shapes = {column: stored.shape for column, stored in columns.items()}
    size = config.settings.state_size
    if not isinstance(size, dict):
        assert shapes["observation"] == widened(np.zeros(size)).shape
    else:
        assert shapes["observation/eye"] == (*IMAGE, 1)
        assert shapes["observation/speed"] == (1,)
