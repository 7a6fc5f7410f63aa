"""What a worker says of the first steps that environments send."""

import logging

import numpy as np
import pytest

from relaax.algorithm_base import ConfigBase
from relaax.configuration.announced_spaces import Doubts
from relaax.configuration.first_look import LOOKS, FirstLook

NO_REWARDS = np.zeros(0)


class Scaling(ConfigBase):
    """A configuration that brings states or rewards to one size."""

    def __init__(self, scaled=""):
        super().__init__({})
        self._states, self._rewards = scaled == "states", scaled == "rewards"

    def scales_states(self):
        return self._states

    def largest_reward(self):
        return 1e7 if self._rewards else super().largest_reward()


@pytest.fixture(name="said")
def _said(caplog):
    return lambda: [record.message for record in caplog.records]


def look_at(states, rewards=NO_REWARDS, times=LOOKS, scaled=""):
    look = FirstLook(Doubts(logging.getLogger("test")), Scaling(scaled))
    for _ in range(times):
        goes_on = look.take(rewards, states)
    return goes_on


def test_it_looks_a_thousand_times_and_no_more():
    assert look_at(np.zeros((1, 2), np.float32), times=LOOKS - 1)
    assert not look_at(np.zeros((1, 2), np.float32))


def test_a_large_reward_is_said_once_with_what_to_write(said):
    look_at(np.zeros((1, 1), np.float32), np.array([1.0, -2500.0]))
    (line,) = said()
    assert line.startswith("doubtful: an environment has sent a reward of size 2500")
    assert "let reward_scale in the algorithm section be about 0.0004" in line


@pytest.mark.parametrize("scaled", ["", "states"])
def test_an_image_of_large_numbers_is_doubtful_also_where_states_are_filtered(said, scaled):
    image = np.full((1, 8, 8, 1), 65535, np.float32)
    look_at({"camera": image, "speed": np.full((1, 1), 99, np.float32)}, times=2, scaled=scaled)
    (line,) = said()
    assert line.startswith("doubtful: the observation of environments (camera), of another type")
    assert "numbers up to 65535, which stay as they are: send an image as uint8" in line


@pytest.mark.parametrize("pixel", [np.uint8(255), np.float32(10)])
def test_an_image_of_bytes_or_of_small_numbers_is_not_doubtful(said, pixel):
    look_at(np.full((1, 8, 8, 3), pixel), times=2)
    assert said() == []


@pytest.mark.parametrize("rewards", [[1000.0], [-3.0, 7.0], []])
def test_a_usual_reward_is_not_doubtful(said, rewards):
    look_at(np.zeros((1, 1), np.float32), np.array(rewards))
    assert said() == []


def test_rewards_that_are_scaled_are_not_doubtful(said):
    look_at(np.zeros((1, 1), np.float32), np.array([1e6]), scaled="rewards")
    assert said() == []


def test_numbers_of_very_different_sizes_are_named(said):
    look_at({"arm": np.array([[5e6, 1e-4], [-7e6, 0]], np.float32)})
    (line,) = said()
    assert "the observation of environments (arm) have sizes from 0.0001 to 7e+06" in line


@pytest.mark.parametrize(
    "states",
    [
        np.array([[1e4, 1e-4]], np.float32),
        np.array([[1e12, 0]], np.float32),
        np.array([[255, 0, 1]], np.uint8),
    ],
)
def test_numbers_of_usual_sizes_zeros_and_bytes_are_not_doubtful(said, states):
    look_at(states)
    assert said() == []


def test_states_that_are_filtered_are_not_doubtful(said):
    look_at(np.array([[1e9, 1e-9]], np.float32), scaled="states")
    assert said() == []
