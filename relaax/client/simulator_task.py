"""A program that plays simulators, a process for each: the whole run, and each process's task."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from relaax.client.rlx_client import Client
from relaax.client.run_environments import fitting_this_process, run_environments
from relaax.client.run_options import RunOptions, run_options
from relaax.client.simulator import RunObserver, RunResult, Simulator
from relaax.client.simulator_runner import SimulatorRunner
from relaax.errors import ConfigurationError

_Made = TypeVar("_Made")

SimulatorFactory: TypeAlias = Callable[[int | None], Simulator]
"""Makes a simulator, given the seed of its random numbers; pickled, to reach the process."""


def play_simulators(
    arguments: argparse.Namespace, name: str, make_simulator: SimulatorFactory
) -> int:
    """Play simulators, a process for each, and return the exit status of the program.

    With a server in this process one simulator is played, and a warning is logged. arguments:
    parsed by ``add_run_options``. name: of the simulator, for messages and metrics.
    """
    options = fitting_this_process(run_options(arguments, name))
    try:
        return run_environments(SimulatorTask(options, make_simulator), options)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2


@dataclass(frozen=True)
class SimulatorTask:
    """Plays one simulator on a connection."""

    options: RunOptions
    make_simulator: SimulatorFactory

    def __call__(self, index: int, report: RunObserver) -> RunResult:
        """Play the share of process ``index``."""
        options = self.options
        seed = options.seeds.of(index, report.restarts)
        with naming(options.env), contextlib.ExitStack() as open_ones:
            simulator = made(partial(self.make_simulator, seed), report)
            open_ones.enter_context(contextlib.closing(simulator))
            client = Client(
                options.rlx_server,
                reconnect=options.backoff,
                environment=options.env,
                observation_space=simulator.observation_space,
                action_space=simulator.action_space,
                evaluate=options.evaluate,
            )
            open_ones.enter_context(client)
            runner = SimulatorRunner(simulator, client, observer=report)
            return runner.run(options.episodes_of(index, report.episodes_before))


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Let messages of ConfigurationError begin with the ``name`` of an environment."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {error}") from error


def made(make: Callable[[], _Made], report: RunObserver) -> _Made:
    """Return an environment that ``make`` returns; ConfigurationError if it raises anything.

    Where the process was started again its exceptions propagate: it may be made later.
    """
    report.environment_begins()
    try:
        environment = make()
    except Exception as error:  # an environment may raise anything; the parent prints it
        if report.restarts:
            raise
        raise ConfigurationError(str(error)) from error
    report.environment_returned()
    return environment
