"""TRPO as the servers load it."""

from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def trpo() -> ModuleType:
    """The algorithm's package, with TensorFlow."""
    package = load_algorithm(REPOSITORY / "algorithms" / "trpo").module
    package.prepare_to_fork()
    return package
