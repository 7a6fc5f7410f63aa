"""The command ``relaax-experiment``: runs a trial of an experiment, shows and lists experiments."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from relaax import __version__
from relaax.configuration import run_command
from relaax.errors import ConfigurationError
from relaax.experiments.checks import mistakes
from relaax.experiments.files import experiments_in, load_experiment
from relaax.experiments.trial import HOST, Trial
from relaax.experiments.written import NamedExperiment, to_yaml
from relaax.launcher.main import main as train
from relaax.launcher.ports import free_port

_NAME = "relaax-experiment"

#: The first port that a trial looks at.
FIRST_PORT = 7100

_DESCRIPTION = """\
Run trials of experiments. An experiment is a class of Python that is registered, or its twin in
YAML: how many actor workers, policy workers and trainers there are, and which streams connect
them."""


def main() -> int:
    """Run the command line and return the exit status."""
    arguments = _parser().parse_args()
    return run_command(_NAME, lambda: _CARRY_OUT[arguments.command](arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, meaning in (
        ("run", "start all workers of a trial, show its progress, and wait until it is over"),
        ("show", "print the experiment as YAML: this file runs in its place"),
        ("list", "print the names of the experiments of a file"),
    ):
        command = commands.add_parser(name, help=meaning, description=meaning)
        command.add_argument("file", type=Path, metavar="FILE", help="a .py or .yaml file")
        if name != "list":
            command.add_argument(
                "-e",
                "--experiment",
                metavar="NAME",
                help="the name of the experiment (default: the only one of the file)",
            )
        if name == "run":
            command.add_argument(
                "-f",
                "--trial",
                default="trial1",
                metavar="NAME",
                help="the name of the trial; one that was stopped goes on (default: %(default)s)",
            )
            command.add_argument(
                "--directory",
                type=Path,
                default=Path("training/experiments"),
                help="the folder of all trials, in EXPERIMENT/TRIAL (default: %(default)s)",
            )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    experiment = _checked(arguments)
    if "/" in arguments.trial or not arguments.trial:
        raise ConfigurationError(f"-f: a trial needs a name without '/', not {arguments.trial!r}")
    place = (arguments.directory / experiment.name / arguments.trial).resolve()
    taken: list[int] = []

    def next_port() -> int:
        taken.append(free_port(HOST, FIRST_PORT, taken))
        return taken[-1]

    procfile = Trial(experiment, place, next_port).write()
    print(f"{experiment.name}/{arguments.trial} in {place}", flush=True)
    return train([str(procfile), "--log-file", str(place / "log")])


def _show(arguments: argparse.Namespace) -> int:
    sys.stdout.write(to_yaml(_checked(arguments)))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for name in experiments_in(arguments.file):
        print(name)
    return 0


def _checked(arguments: argparse.Namespace) -> NamedExperiment:
    """Return the experiment; ConfigurationError with each mistake in it."""
    experiment = load_experiment(arguments.file, arguments.experiment)
    found = mistakes(experiment)
    if found:
        raise ConfigurationError("; ".join(found))
    return experiment


_CARRY_OUT: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "show": _show,
    "list": _list,
}


if __name__ == "__main__":
    sys.exit(main())
