"""What an actor sees of the environment in its own process."""

import gymnasium
import numpy as np
import pytest

from relaax.compat.surreal.actor import ActorEnvironment

ASKED = {
    "type": "Dict",
    "spaces": {
        "place": {"type": "Box", "shape": [1]},
        "legal": {"type": "Box", "shape": [2], "action_mask": True},
    },
}


class Reused(gymnasium.Env):
    """Fills one array with its state, and one with what is allowed there."""

    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reward=1.0):
        self.place, self.bits = np.zeros(1, np.float32), np.zeros(2, np.int8)
        self.reward = reward

    def reset(self, *, seed=None, options=None):
        self.place[:], self.bits[:] = -7, (1, 0)
        return self.place, {"action_mask": self.bits}

    def step(self, action):
        self.place[:], self.bits[:] = 5, (0, 1)
        return self.place, self.reward, False, True, {"action_mask": self.bits}


def test_a_state_stays_as_it_was_and_has_its_mask_by_the_names_of_the_configuration():
    environment = ActorEnvironment(Reused(), ASKED)
    first, _ = environment.reset(3)
    last = environment.step(np.int64(1)).state
    assert {name: part.tolist() for name, part in first.items()} == {"place": [-7], "legal": [1, 0]}
    assert {name: part.tolist() for name, part in last.items()} == {"place": [5], "legal": [0, 1]}


def test_a_mask_that_the_configuration_does_not_know_is_a_doubt(caplog):
    environment = ActorEnvironment(Reused(), {"type": "Box", "shape": [1]})
    assert environment.reset(3)[0].tolist() == [-7]
    assert environment.step(1).state.tolist() == [5]
    (doubt,) = caplog.messages
    assert doubt.startswith("doubtful: the environment gives masks of actions")


def test_a_reward_is_one_number_of_any_type():
    assert ActorEnvironment(Reused(np.ones(1, np.float16))).step(0).reward == 1.0
    with pytest.raises(TypeError, match=r"the reward is .*, it must be a number"):
        ActorEnvironment(Reused(np.ones(2))).step(0)


def test_floats_of_64_bits_stay_so_whatever_the_space_says():
    environment = Reused()
    environment.reset = lambda **_: (np.float64([1_764_280_000]), {})
    environment.step = lambda _: (np.float64([1_764_280_010]), 1.0, False, False, {})
    seen = ActorEnvironment(environment)
    for state in (seen.reset(0)[0], seen.step(0).state):
        assert state.dtype == np.float64
    assert state.tolist() == [1_764_280_010]
