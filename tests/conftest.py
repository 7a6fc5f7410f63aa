"""What tests of every kind share."""

import importlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from processes import REPOSITORY, Training, wait_for

from relaax.bridge import Bridge
from relaax.failpoints import failpoints
from relaax.server.common.algorithm_loader import load_algorithm

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A shell that starts the tests in the background lets them ignore SIGINT, and with them all
# processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Read now, when nothing is set: what a test sets is for the processes that it starts alone.
failpoints()


@pytest.fixture(scope="session")
def da3c() -> ModuleType:
    """DA3C as the servers load it."""
    return load_algorithm(REPOSITORY / "algorithms" / "da3c").module


@pytest.fixture(scope="session")
def da3c_module(da3c: ModuleType) -> Callable[[str], ModuleType]:
    """A module inside DA3C, by its name within the package."""
    return lambda name: importlib.import_module(f"{da3c.__name__}.{name}")


@pytest.fixture(name="training")
def _training(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Training]:
    """A training of real processes; nothing of it is left when the test ends.

    Each connection has a worker of its own, unless the test is parametrized otherwise.
    """
    training = Training(tmp_path, getattr(request, "param", "connection"))
    try:
        yield training
    finally:
        print(training.show())
        training.close()
    wait_for(lambda: not training.survivors(), "the end of every process, orphans too", 10)


@pytest.fixture(name="bridge")
def _bridge(training: Training) -> Iterator[Bridge]:
    """A worker's view of the training's parameter server."""
    bridge = Bridge(training.parameter_server_url)
    yield bridge
    bridge.close()
