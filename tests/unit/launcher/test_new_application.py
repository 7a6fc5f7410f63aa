"""The configuration that ``relaax-new --gymnasium`` writes for an environment's spaces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from relaax.configuration import load_rlx_server
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.launcher.new_application import kind_of_gymnasium, write_new_application

NAME = "Bounded-v0"


class Bounded(gymnasium.Env[Any, Any]):
    observation_space = Box(-1, 1, (3,))

    def __init__(self, action_space: Box) -> None:
        self.action_space = action_space


@pytest.fixture(autouse=True)
def _no_environment_stays() -> Iterator[None]:
    yield
    del gymnasium.registry[NAME]


def bounds(directory: Path, actions: Box) -> tuple[Any, Any]:
    """Return what the algorithm makes of the file that is written."""
    gymnasium.register(NAME, lambda: Bounded(actions), disable_env_checker=True)
    write_new_application(directory, kind_of_gymnasium(NAME))
    algorithm = load_rlx_server(["--config", str(directory / "training.yaml")]).algorithm
    config: Any = make_config(load_algorithm(algorithm.directory), algorithm)
    space = config.action_space()
    return space.get("low"), space.get("high")


def test_bounds_of_all_numbers_are_the_same(tmp_path: Path):
    assert bounds(tmp_path, Box(-0.4, 0.4, (2,))) == (-0.4, 0.4)
    assert "action_low: -0.4 " in (tmp_path / "training.yaml").read_text()


def test_each_number_of_an_action_has_bounds_of_its_own(tmp_path: Path):
    actions = Box(np.float32([[-1, 0], [-2, 0]]), np.float32([[1, 2], [3, 4]]))
    assert bounds(tmp_path, actions) == ([[-1, 0], [-2, 0]], [[1, 2], [3, 4]])


def test_actions_without_bounds_have_none(tmp_path: Path):
    infinity = float("inf")
    assert bounds(tmp_path, Box(-infinity, infinity, (2,))) == (None, None)


def test_the_largest_numbers_there_are_stand_for_no_bounds(tmp_path: Path):
    most = np.finfo(np.float32).max
    assert bounds(tmp_path, Box(-most, most, (2,))) == (None, None)


def test_some_actions_have_bounds(tmp_path: Path):
    infinity = float("inf")
    actions = Box(np.float32([-1, -infinity]), np.float32([infinity, 1]))
    assert bounds(tmp_path, actions) == ([-1, None], [None, 1])
