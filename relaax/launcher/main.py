"""The command ``relaax-train``, which runs all processes of a training.

Each process runs in a session of its own, so Ctrl-C reaches the launcher alone. The launcher
then sends SIGTERM to the processes in turns, so that each can deliver what it has: to environments,
RLX servers and all others, to learners, and to replay servers and parameter servers, which write
checkpoints. Nothing waits for longer than 10 seconds for its turn. The same happens when one
process exits by itself; with ``--restart`` a process that was killed is started again. What still
runs 30 seconds after the last turn is killed. When the launcher itself is killed, all are stopped
at once.

The exit status is

- the status of the process that exited first, or 128 + N if signal N ended it,
- 130 after SIGINT,
- 124 when --timeout is over,
- 143 after SIGTERM, after SIGHUP (the terminal was closed), and when the output cannot be written,
- 2 if the Procfile cannot be used.

With ``--serial`` it runs all in its own process instead: see ``relaax.server.serial``.

With ``--new-algorithm DIR`` it writes an algorithm to start from instead, and runs nothing.
"""

import argparse
import io
import math
import os
import secrets
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relaax import __version__
from relaax.configuration import run_command
from relaax.configuration.announced_spaces import DOUBTFUL
from relaax.configuration.exit_status import USAGE
from relaax.errors import ConfigurationError
from relaax.launcher.check import (
    Findings,
    check,
    doubts_in,
    idle_copies,
    missing_programs,
    require_start_folder,
)
from relaax.launcher.described import (
    DEFAULT_PROCFILE,
    Described,
    Needs,
    Placement,
    copied,
    described,
    read_procfile,
    require_lines,
)
from relaax.launcher.engines.local import LocalEngine
from relaax.launcher.engines.ray_cluster import on_ray
from relaax.launcher.engines.slurm import SlurmEngine
from relaax.launcher.live_printer import LivePrinter
from relaax.launcher.new_application import steps_of_algorithm, write_new_algorithm
from relaax.launcher.ports import require_free_ports
from relaax.launcher.process_log import ProcessLog, incarnation, log_beside_checkpoints
from relaax.launcher.run_record import RunRecorder
from relaax.launcher.runner import Engine, Runner, RunRules
from relaax.launcher.serial import one_process
from relaax.processes.run_variables import INCARNATION, RUN
from relaax.processes.whole_numbers import positive
from relaax.telemetry.live_lines import ASKED_BY

#: The resources of processes on machines of their own, by option.
_AMOUNTS = {
    "cpus": "cores (default: 1)",
    "gpus": "GPUs (default: 0)",
    "memory": "GiB of memory (default: nothing is kept for it)",
}

#: Options of a run, which ``relaax-experiment run`` has, too.
_OF_RUNS = ("restart", "ignore_worker_error", "timeout")

_NAME = "relaax-train"

_DESCRIPTION = """\
Start all processes of a Procfile and show the progress of the training. When one process exits,
stop the others: at the end of a training, the parameter server or the RLX server exits first. This
is "honcho -f PROCFILE start" with the progress below the log. Ctrl-C saves a checkpoint and
stops."""


@dataclass(frozen=True)
class Target:
    """The value of --on: ``ray``, with the address of a cluster, or another engine."""

    name: str
    address: str


@dataclass(frozen=True)
class OnMachines:
    """The machines of a run, and by line how many processes there are, with which needs."""

    target: Target
    placement: Placement
    counts: Mapping[str, int]
    needs: Mapping[str, Needs]


def main() -> int:
    """Run the command line and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if not arguments.serial and arguments.steps is not None:
        parser.error("--steps is for --serial")
    for option in (*_OF_RUNS, "concurrency", "on", "log_file", *_AMOUNTS):
        if arguments.serial and getattr(arguments, option):
            parser.error(f"--{option.replace('_', '-')} is for processes: --serial starts none")
    return run_command(_NAME, lambda: _carry_out(arguments, run_rules(arguments)))


def run_procfile(
    procfile: Path,
    log_file: Path,
    rules: RunRules,
    record: RunRecorder,
    machines: OnMachines | None = None,
) -> int:
    """Run a Procfile and return the exit status; ConfigurationError.

    The ``record`` has the state of the run. Keys of ``rules`` are those of lines. Without
    ``machines`` all processes run on this one.
    """
    arguments = _parser().parse_args([])
    arguments.procfile, arguments.log_file = procfile, log_file
    if machines is not None:
        arguments.on, arguments.placement = machines.target, machines.placement
        arguments.concurrency = machines.counts
        arguments.cpus = {line: each.cpus for line, each in machines.needs.items()}
        arguments.gpus = {line: each.gpus for line, each in machines.needs.items()}
        arguments.memory = {line: each.memory_gib for line, each in machines.needs.items()}
    return _carry_out(arguments, rules, record)


def _carry_out(
    arguments: argparse.Namespace, rules: RunRules, record: RunRecorder | None = None
) -> int:
    if arguments.new_algorithm is not None:
        return _write_algorithm(arguments.new_algorithm)
    if arguments.serial:
        return _check_or_run_serial(arguments)
    processes = described(read_procfile(arguments.procfile), arguments.set)
    require_start_folder(arguments.procfile, processes)
    findings = check(processes, on_one_machine=arguments.on is None)
    if arguments.on is None:
        started = [each for each in processes if arguments.concurrency.get(each.line, 1)]
        findings.mistakes.extend(missing_programs(started))
    if not findings.mistakes:
        processes = _planned(processes, arguments)
        findings.doubts.extend(idle_copies(processes))
    if arguments.check:
        return _say_all(findings, _log_path(arguments, processes))
    _say_doubts(findings)
    if arguments.on is None:
        known = [each for each in processes if each.is_started_here or arguments.concurrency]
        require_free_ports(known, arguments.procfile)
    log = _log(_log_path(arguments, processes))
    return _run(processes, arguments, rules, log, record)


def _planned(processes: list[Described], arguments: argparse.Namespace) -> list[Described]:
    """Return the processes with their copies and needs, where any are asked for."""
    amounts = {option: getattr(arguments, option) for option in _AMOUNTS}
    for option, by_line in amounts.items():
        if by_line and arguments.on is None:
            raise ConfigurationError(f"--{option} is for --on: this machine's are not divided")
        require_lines(option, by_line, processes)
    if arguments.on is None and not arguments.concurrency:
        return processes
    needs = {
        each.line: Needs(
            amounts["cpus"].get(each.line, 1.0),
            amounts["gpus"].get(each.line, 0.0),
            amounts["memory"].get(each.line, 0.0),
        )
        for each in processes
    }
    return copied(processes, arguments.concurrency, needs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "procfile",
        nargs="?",
        type=Path,
        default=DEFAULT_PROCFILE,
        metavar="PROCFILE",
        help="such as Procfiles/cartpole.Procfile (default: the file Procfile of this folder)",
    )
    one.add_argument(
        "--new-algorithm",
        type=Path,
        metavar="DIR",
        help="write a small algorithm, its YAML file and its Procfile into a new folder",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="start nothing: say in sentences which arguments and keys of the processes are wrong "
        "or doubtful, and which announcements and states of environments the servers of the last "
        "training have found doubtful, as the log has it. The exit status is 0 if nothing is "
        "wrong. Each start looks, too",
    )
    parser.add_argument(
        "--serial",
        action="store_true",
        help="run environment, agent and parameter server in this process and thread, so that a "
        "debugger's breakpoints stop in all of them: python -m pdb -m "
        "relaax.launcher.main --serial. PROCFILE may be the YAML file of one. Of several "
        "environments in lines of their own the first is run",
    )
    parser.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        help="with --serial: save and stop after N steps of the environment",
    )
    add_run_options(parser)
    parser.add_argument(
        "--concurrency",
        type=_counts,
        default={},
        metavar="NAME=N,...",
        help="run N copies of these lines, such as rlx=2,env=4; 0 leaves one out. RLX servers get "
        "addresses of their own, and environments are told one of them in turn; the variable "
        "RELAAX_COPY tells copies apart: each has environments with seeds of their own",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="algorithm.KEY=VALUE",
        help="give this to all processes of RELAAX: it sets a key of the section algorithm of "
        "their YAML file, such as algorithm.rewards_gamma=0.98; it may be given several times",
    )
    engines = parser.add_argument_group("on many machines")
    engines.add_argument(
        "--on",
        type=target_of,
        default=None,
        metavar="ENGINE",
        help="'ray' or 'ray=ADDRESS': on a Ray cluster (pip install 'relaax[ray]'); 'slurm': in "
        "the Slurm allocation that this runs in. Processes are told the addresses that they need. "
        "The machines share the folder that this is started in",
    )
    for option, meaning in _AMOUNTS.items():
        engines.add_argument(
            f"--{option}",
            type=_amounts,
            default={},
            metavar="NAME=N,...",
            help=f"{meaning} for each process of these lines",
        )
    add_placement(engines)
    parser.add_argument(
        "--log-file",
        type=Path,
        metavar="FILE",
        help="write the output of all processes into this file, with time, process and level "
        "in each line (default: the file log in the folder of the parameter server's "
        "--checkpoint-dir or --metrics-dir)",
    )
    return parser


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what ends a run, and what does not."""
    parser.add_argument(
        "--restart",
        action="store_true",
        help="start a process again that is killed, for want of memory or with kill -9, and let "
        "the others run on; not if it ends by itself, nor if it is killed more than five times a "
        "minute. Give the servers --checkpoint-dir: they go on from there",
    )
    parser.add_argument(
        "--ignore-worker-error",
        action="store_true",
        help="let the others run on when a process fails, until one ends with status 0, as the "
        "parameter server does when the training is over. Processes that cannot go on without it "
        "give up by themselves",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="stop all processes after so long, as Ctrl-C does, with exit status 124",
    )


def add_placement(engines: Any) -> None:
    """Add the option that says how processes are distributed over machines."""
    engines.add_argument(
        "--placement",
        type=Placement,
        choices=list(Placement),
        default=Placement.SPREAD,
        metavar="{spread,pack}",
        help="whether processes are on as many or as few machines as possible (default: spread)",
    )


def run_rules(arguments: argparse.Namespace) -> RunRules:
    """Return the rules that those options say."""
    return RunRules(arguments.restart, arguments.ignore_worker_error, arguments.timeout)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be more than 0 seconds, is {text!r}")
    return seconds


def _log(path: Path | None) -> ProcessLog | None:
    try:
        return None if path is None else ProcessLog(path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the log {path}: {error.strerror}; --log-file names another"
        ) from error


def _log_path(arguments: argparse.Namespace, processes: Sequence[Described]) -> Path | None:
    return arguments.log_file or log_beside_checkpoints(processes)


def _say_doubts(findings: Findings) -> None:
    """Print the doubts; ConfigurationError for a mistake."""
    if findings.mistakes:
        raise ConfigurationError("; ".join(findings.mistakes))
    for doubt in findings.doubts:
        print(f"{DOUBTFUL}{doubt}", flush=True)


def _say_all(findings: Findings, log: Path | None) -> int:
    """Print all that is wrong or doubtful, was doubtful in the training of ``log``, or is taken."""
    for mistake in findings.mistakes:
        print(f"{_NAME}: error: {mistake}")
    seen = [] if log is None else [f"in the last training: {doubt}" for doubt in doubts_in(log)]
    for doubt in [*findings.doubts, *seen]:
        print(f"{DOUBTFUL}{doubt}")
    for note in findings.notes:
        print(note)
    if not findings.mistakes:
        print("nothing is wrong" + (", but see above" if findings.doubts or seen else ""))
    return USAGE if findings.mistakes else 0


def _write_algorithm(directory: Path) -> int:
    try:
        print(steps_of_algorithm(directory, write_new_algorithm(directory)))
    except ConfigurationError as error:
        raise ConfigurationError(f"--new-algorithm: {error}") from error
    return 0


def _check_or_run_serial(arguments: argparse.Namespace) -> int:
    lines = one_process(arguments.procfile, arguments.set)
    findings = check(lines.servers, on_one_machine=False)
    if arguments.check:
        return _say_all(findings, _log_path(arguments, lines.servers))
    _say_doubts(findings)
    # Only this needs the parts of all servers and of the client.
    from relaax.server.serial.command import run_serial

    return run_serial(lines.parts(), arguments.steps)


def _run(
    processes: list[Described],
    arguments: argparse.Namespace,
    rules: RunRules,
    log: ProcessLog | None,
    record: RunRecorder | None,
) -> int:
    _stop_when_the_terminal_closes()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # no output of a process must end the training
    if log is not None:
        log.begin()
    printer = LivePrinter(sys.stdout, log, record)
    try:
        with _engine_of(processes, arguments, printer.interval_s) as engine:
            turns = {process.name: process.turn_to_stop for process in processes}
            keys = {
                each.name: rules.keys[each.line] for each in processes if each.line in rules.keys
            }
            return Runner(turns, engine, printer, replace(rules, keys=keys)).run()
    finally:
        printer.close()
        if log is not None:
            log.close()


def _engine_of(
    processes: list[Described], arguments: argparse.Namespace, interval_s: float
) -> AbstractContextManager[Engine]:
    """Return where the processes are to run; live lines come every ``interval_s`` seconds."""
    start = incarnation(processes, _log_path(arguments, processes))
    variables = {ASKED_BY: str(interval_s), INCARNATION: str(start)}
    if RUN not in os.environ and any(process.begins_training() for process in processes):
        variables[RUN] = _new_run(arguments.procfile)
    if arguments.on is None:
        has_copies = bool(arguments.concurrency)
        return nullcontext(LocalEngine(processes, variables, has_copies=has_copies))
    if arguments.on.name == "slurm":
        return nullcontext(SlurmEngine(processes, arguments.placement, variables))
    return on_ray(processes, arguments.on.address, arguments.placement, variables)


def _new_run(procfile: Path) -> str:
    """Return a name for this training: no other one has it, and people see which one it is."""
    stem = procfile.name.removesuffix(".Procfile")
    known_as = procfile.resolve().parent.name if procfile == DEFAULT_PROCFILE else stem
    return f"{known_as[:200]}-{secrets.token_hex(4)}"


def _stop_when_the_terminal_closes() -> None:
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))


def target_of(text: str, names: Sequence[str] = ("ray", "slurm")) -> Target:
    """Return the engine of these ``names``; of ``ray`` alone with an address."""
    name, separator, address = text.partition("=")
    if name not in names or (separator and (name != "ray" or not address)):
        known = ", ".join(("ray=ADDRESS", *names))
        raise argparse.ArgumentTypeError(f"must be one of {known}, is {text!r}")
    return Target(name, address)


def _amounts(text: str) -> dict[str, float]:
    """Return the numbers of ``NAME=N,...`` by name."""
    found = {}
    for each in text.split(","):
        name, _, amount = each.partition("=")
        try:
            found[name.strip()] = float(amount)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be NAME=N,..., is {text!r}") from None
    if not all(0 <= amount < math.inf for amount in found.values()):
        raise argparse.ArgumentTypeError(f"numbers must be 0 or more: {text!r}")
    return found


def _counts(text: str) -> dict[str, int]:
    found = _amounts(text)
    if any(amount != int(amount) for amount in found.values()):
        raise argparse.ArgumentTypeError(f"numbers of processes must be whole: {text!r}")
    return {name: int(amount) for name, amount in found.items()}


if __name__ == "__main__":
    sys.exit(main())
