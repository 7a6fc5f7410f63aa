"""ACER as the servers load it."""

from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def acer() -> ModuleType:
    """The algorithm's package, with TensorFlow."""
    package = load_algorithm(REPOSITORY / "algorithms" / "acer").module
    package.prepare_to_fork()
    return package
