"""da3c_cont as the servers load it."""

from types import ModuleType

import pytest
from processes import REPOSITORY

from relaax.configuration.algorithm_loader import load_algorithm


@pytest.fixture(scope="session")
def continuous() -> ModuleType:
    """The algorithm's package."""
    return load_algorithm(REPOSITORY / "algorithms" / "da3c_cont").module
