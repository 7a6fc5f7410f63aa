"""PPO as the servers load it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def ppo() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "ppo").module


@pytest.fixture(scope="session")
def ppo_module(ppo: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside PPO, by its name within the package."""
    return lambda name: importlib.import_module(f"{ppo.__name__}.{name}")
