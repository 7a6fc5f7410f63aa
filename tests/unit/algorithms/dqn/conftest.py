"""DQN as the servers load it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def dqn() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "dqn").module


@pytest.fixture(scope="session")
def dqn_module(dqn: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside DQN, by its name within the package."""
    return lambda name: importlib.import_module(f"{dqn.__name__}.{name}")
