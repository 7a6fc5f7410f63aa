"""A program that plays simulators, a process for each: the whole run, and each process's task."""

import argparse
import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from relaax.client.rlx_client import Client
from relaax.client.run_environments import fitting_this_process, run_connections
from relaax.client.run_options import RunOptions, run_options
from relaax.client.simulator import RunObserver, RunOutcome, RunResult, Simulator
from relaax.client.simulator_runner import SimulatorRunner
from relaax.errors import ConfigurationError

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
        return run_connections(SimulatorTask(options, make_simulator), options)
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
        report.environment_begins()
        try:
            simulator = self.make_simulator(options.seeds.of(index, report.restarts))
        except Exception as error:  # a simulator may raise anything; the parent prints it
            if report.restarts:
                raise
            return unusable(options.env, error)
        report.environment_returned()
        with contextlib.ExitStack() as open_ones:
            open_ones.enter_context(contextlib.closing(simulator))
            try:
                client = Client(
                    options.rlx_server,
                    reconnect=options.backoff,
                    environment=options.env,
                    observation_space=simulator.observation_space,
                    action_space=simulator.action_space,
                    evaluate=options.evaluate,
                )
            except ConfigurationError as error:
                return unusable(options.env, error)
            open_ones.enter_context(client)
            runner = SimulatorRunner(simulator, client, observer=report)
            return runner.run(options.episodes_of(index, report.episodes_before))


def unusable(name: str, error: Exception) -> RunResult:
    """Return the result of a run whose simulator cannot be made or used."""
    return RunResult(RunOutcome.UNUSABLE, f"{name}: {error}")
