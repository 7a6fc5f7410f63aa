"""What tests of every kind share."""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def da3c() -> ModuleType:
    """DA3C as the servers load it."""
    from relaax.server.common.algorithm_loader import load_algorithm

    return load_algorithm(REPOSITORY / "algorithms" / "da3c").module


@pytest.fixture(scope="session")
def da3c_module(da3c: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside DA3C, by its name within the package."""
    return lambda name: importlib.import_module(f"{da3c.__name__}.{name}")
