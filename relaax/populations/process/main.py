"""Reads the members' configurations, and runs the manager until it is stopped."""

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from relaax import __version__
from relaax.address import Address
from relaax.checkpoints import DirectoryStore
from relaax.configuration import LearnerConfiguration, load_learner, run_command
from relaax.configuration.access import begin_access
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.configuration.population_rules import PopulationFile, merged
from relaax.errors import ConfigurationError
from relaax.populations.manager import MemberPlace, PopulationManager
from relaax.populations.record import PLOT, TABLE, PopulationRecord
from relaax.populations.stub import MemberStub
from relaax.populations.vanilla_pbt import VanillaPopulation
from relaax.processes.directory_lock import owned
from relaax.processes.stop_signal import StopSignal
from relaax.telemetry.logs import start_logging

_PROGRAM = "relaax-population-manager"

#: How often it looks at the members, and how often it writes the record without an exploit.
_INTERVAL_S, _RECORD_S = 1.0, 30.0

_DESCRIPTION = """\
Manage a population: policies that are learnt at the same time, each with a parameter server and a
learner of its own (relaax-learner --population-member). Weak members take the parameters of strong
ones, and their hyperparameters with changes. relaax-experiment starts it where an experiment has a
PopulationManager."""


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
        help=f"where {TABLE} and {PLOT} say who copied whom",
    )
    return parser


def _manage(arguments: argparse.Namespace) -> int:
    members = {path.stem: load_learner(["--config", str(path)]) for path in arguments.members}
    servers = arguments.parameter_servers or [
        each.options.parameter_server for each in members.values()
    ]
    if len(servers) != len(members):
        raise ConfigurationError(
            f"--parameter-servers: {len(servers)} addresses of {len(members)} members"
        )
    rules = PopulationFile.read(arguments.rules)
    options = next(iter(members.values())).options
    start_logging(options.log_level, options.log_file, _PROGRAM)
    begin_access(options, listens=False)
    stop = StopSignal()
    hyperparameters = {name: rules.initial_hyperparams.get(name, {}) for name in members}
    population = VanillaPopulation(rules.rule(), hyperparameters)
    with ExitStack() as resources:
        resources.enter_context(owned(arguments.directory, _PROGRAM))
        places = {
            name: _place(each, str(server), resources)
            for (name, each), server in zip(members.items(), servers, strict=True)
        }
        for name, place in places.items():
            place.require_allowed(hyperparameters[name])
        record = PopulationRecord(DirectoryStore(arguments.directory), list(members))
        stream = rules.population_sample_stream
        manager = PopulationManager(population, places, stream, record)
        resources.callback(manager.close)
        print(f"a population of {', '.join(members)}", flush=True)
        rounds = 0
        while not stop.wait(_INTERVAL_S):
            manager.advance()
            rounds += 1
            if rounds % (_RECORD_S // _INTERVAL_S) == 0:
                record.write()
    return 0


def _place(
    configuration: LearnerConfiguration, parameter_server: str, resources: ExitStack
) -> MemberPlace:
    options = configuration.options
    stub = resources.enter_context(closing(MemberStub(parameter_server)))
    if options.checkpoint_dir is None:
        raise ConfigurationError(
            f"{configuration.algorithm.source}: a member of a population needs --checkpoint-dir in "
            "the section relaax-learner: other members take its parameters from there"
        )
    return MemberPlace(stub, str(options.checkpoint_dir), _checker(configuration))


def _checker(configuration: LearnerConfiguration) -> Callable[[Mapping[str, Any]], object]:
    section = configuration.algorithm
    algorithm = load_algorithm(section.directory)

    def check(hyperparameters: Mapping[str, Any]) -> None:
        parameters = merged(section.parameters, hyperparameters)
        make_config(algorithm, replace(section, parameters=parameters))

    return check


if __name__ == "__main__":
    sys.exit(main())
