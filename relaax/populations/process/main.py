"""Reads the members' configurations, and runs the manager until it is stopped."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from relaax import __version__
from relaax.address import Address
from relaax.checkpoints import DirectoryStore
from relaax.configuration import LearnerConfiguration, load_learner, run_command
from relaax.configuration.access import begin_access
from relaax.configuration.population_rules import PopulationFile
from relaax.errors import ConfigurationError
from relaax.populations.process.managers import MANAGERS, Manager, ManagerParts
from relaax.populations.stub import MemberStub
from relaax.processes.directory_lock import owned
from relaax.processes.stop_signal import StopSignal
from relaax.telemetry.live_lines import Figure, LiveLineWriter
from relaax.telemetry.logs import start_logging
from relaax.telemetry.metrics import Metrics, NullMetrics
from relaax.telemetry.operators import Metric, OperatorPort, operator_listener
from relaax.telemetry.operators.families import gauge, gauges
from relaax.telemetry.training import worker_runs

_PROGRAM = "relaax-population-manager"

#: How often it writes tables and plots without a reason.
_RECORD_S = 30.0

_DESCRIPTION = """\
Manage a population: policies that are learnt at the same time, each with a parameter server and a
learner of its own. With vanilla_pbt weak members (relaax-learner --population-member) take the
parameters of strong ones, and their hyperparameters with changes; with self_play a policy plays
against its past versions, and in a league policies play against those of one another; with psro two
policies learn against mixtures of each other's past versions. relaax-experiment starts it where an
experiment has a PopulationManager."""


class ManagerFigures:
    """Shows the numbers of a manager to operators, in its live line, and as ``metrics``.

    These have as their step how many seconds it has run.
    """

    def __init__(self, manager: Manager, metrics: Metrics) -> None:
        self._manager = manager
        self._metrics = metrics
        self._began_at = time.monotonic()
        #: Replaced as a whole: another thread reads them.
        self._numbers = manager.numbers()
        self._line = LiveLineWriter("population", self._live)

    def note(self) -> None:
        """Take the numbers as they are now."""
        before, self._numbers = self._numbers, self._manager.numbers()
        if before != self._numbers:
            for name, value in self._numbers.items():
                self._metrics.scalar(name, value, int(time.monotonic() - self._began_at))
        self._line.write_if_due()

    def figures(self) -> list[Metric]:
        """Return the numbers for Prometheus, by policy those that each policy has."""
        found: dict[str, dict[str, float]] = {}
        for name, value in self._numbers.items():
            quantity, _, policy = name.partition(" of ")
            found.setdefault(f"population_{quantity.replace(' ', '_')}", {})[policy] = value
        means = "What the manager of a population knows"
        return [
            gauge(name, means, values[""])
            if "" in values
            else gauges(name, means, "policy", values)
            for name, values in found.items()
        ]

    def _live(self) -> list[Figure]:
        return [Figure(value, name) for name, value in self._numbers.items()]


def silent(stubs: Mapping[str, MemberStub]) -> str | None:
    """Return which members' parameter servers do not answer, in words; None if all do."""
    names = [name for name, stub in stubs.items() if stub.is_away]
    return f"no answer of the parameter server of {', '.join(names)}" if names else None


def main() -> int:
    """Run the manager, and return the exit status."""
    return run_command(_PROGRAM, lambda: _manage(_parser().parse_args()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--members",
        nargs="+",
        type=Path,
        required=True,
        metavar="FILE",
        help="the configuration of each member, the one of its learner; the file's name is its own",
    )
    parser.add_argument(
        "--parameter-servers",
        nargs="+",
        type=Address.parse,
        metavar="HOST:PORT",
        help="where the members' parameter servers are, in the same order (default: as the files "
        "say); a launcher says so on a cluster",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        required=True,
        metavar="FILE",
        help="YAML with the keys population_algorithm (type_, args), population_sample_stream and "
        "initial_hyperparams",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        required=True,
        help="where tables and plots say what has been done",
    )
    parser.add_argument(
        "--http-bind",
        type=Address.parse,
        metavar="HOST:PORT",
        help="answer HTTP for operators here, as servers do (default: no such port)",
    )
    parser.add_argument(
        "--wandb-runs",
        type=Path,
        metavar="FILE",
        help="a file with runs of Weights & Biases that have what the manager knows; an experiment "
        "writes it (needs relaax[wandb])",
    )
    return parser


def _manage(arguments: argparse.Namespace) -> int:
    members = _members(arguments.members)
    rules = PopulationFile.read(arguments.rules)
    rules.require_members(list(members))
    options = next(iter(members.values())).options
    start_logging(options.log_level, options.log_file, _PROGRAM)
    begin_access(options, listens=arguments.http_bind is not None)
    stop = StopSignal()
    rule = rules.rule()
    with ExitStack() as resources:
        resources.enter_context(owned(arguments.directory, _PROGRAM))
        operators = OperatorPort(operator_listener(arguments.http_bind))
        resources.enter_context(closing(operators))
        servers = _servers(members, arguments.parameter_servers)
        stubs = {
            name: resources.enter_context(closing(MemberStub(server)))
            for name, server in servers.items()
        }
        parts = ManagerParts(
            rules, members, servers, stubs, DirectoryStore(arguments.directory), resources
        )
        manager = MANAGERS[type(rule)](rule, parts)
        resources.callback(manager.write)
        runs = worker_runs(arguments.wandb_runs, resources)
        shown = ManagerFigures(manager, runs or NullMetrics())
        operators.show(shown.figures)
        operators.ready_if(partial(silent, stubs))
        operators.begin()
        print(f"a population of {', '.join(members)}", flush=True)
        written_at = time.monotonic()
        while not stop.wait(manager.interval_s):
            manager.advance()
            shown.note()
            if time.monotonic() - written_at >= _RECORD_S:
                manager.write()
                written_at = time.monotonic()
    return 0


def _members(paths: Sequence[Path]) -> dict[str, LearnerConfiguration]:
    """Return the configuration of each member."""
    found: dict[str, LearnerConfiguration] = {}
    for path in paths:
        if path.stem in found:
            raise ConfigurationError(
                f"--members: two files have the name {path.stem!r}: the name of a file is that of "
                "its member"
            )
        found[path.stem] = load_learner(["--config", str(path)])
    return found


def _servers(
    members: Mapping[str, LearnerConfiguration], given: Sequence[Address] | None
) -> dict[str, str]:
    """Return the address of each member's parameter server."""
    if given is None:
        return {name: str(each.options.parameter_server) for name, each in members.items()}
    if len(given) != len(members):
        raise ConfigurationError(
            f"--parameter-servers: {len(given)} are given, and there are {len(members)} members"
        )
    return dict(zip(members, map(str, given), strict=True))


if __name__ == "__main__":
    sys.exit(main())
