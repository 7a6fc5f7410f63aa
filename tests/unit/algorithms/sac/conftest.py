"""SAC as the servers load it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def sac() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "sac").module


@pytest.fixture(scope="session")
def sac_module(sac: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside SAC, by its name within the package."""
    return lambda name: importlib.import_module(f"{sac.__name__}.{name}")
