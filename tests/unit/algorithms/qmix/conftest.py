"""QMIX as the servers load it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def qmix() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "qmix").module


@pytest.fixture(scope="session")
def qmix_module(qmix: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside QMIX, by its name within the package."""
    return lambda name: importlib.import_module(f"{qmix.__name__}.{name}")
