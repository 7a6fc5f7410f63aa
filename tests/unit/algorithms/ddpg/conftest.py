"""DDPG as the servers load it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def ddpg() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "ddpg").module


@pytest.fixture(scope="session")
def ddpg_module(ddpg: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside DDPG, by its name within the package."""
    return lambda name: importlib.import_module(f"{ddpg.__name__}.{name}")
