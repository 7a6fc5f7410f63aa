"""What tests of every kind share."""

import gc
import importlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import areas
import pytest
from clock import Clock
from processes import REPOSITORY, Training, wait_for

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.parameters import Bridge
from relaax.telemetry.throttled_log import RateLimit

# A shell that starts the tests in the background lets them ignore SIGINT, and with them all
# processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests, and programs that are not of this project, ask servers of this machine: no proxy does.
os.environ["no_proxy"] = ",".join(
    filter(None, ("127.0.0.1", "localhost", os.environ.get("no_proxy")))
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--areas", default=areas.ALL, metavar="NAMES",
        help="of the tests in tests/areas.toml, run those of these areas: names, all or none",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    try:
        areas.chosen(areas.areas(), config.getoption("--areas"))
    except ValueError as error:
        raise pytest.UsageError(f"--areas: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let garbage be looked for among the objects of tests alone: most others are TensorFlow's."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of areas that were not asked for: nothing of them is imported."""
    path = os.path.relpath(collection_path, REPOSITORY)
    table = areas.areas()
    left_out = set(table) - areas.chosen(table, config.getoption("--areas"))
    return True if any(table[name].has_test(path) for name in left_out) else None


@pytest.fixture(name="log_clock")
def _log_clock(caplog: pytest.LogCaptureFixture) -> Iterator[Clock]:
    """Let ``caplog`` get as few lines of a kind as the log of a server does, by this clock."""
    limit = RateLimit(clock := Clock(0.0))
    caplog.handler.addFilter(limit)
    yield clock
    caplog.handler.removeFilter(limit)


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
