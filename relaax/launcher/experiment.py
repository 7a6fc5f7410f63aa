"""The command ``relaax-experiment``: runs trials of experiments, and looks at those that run."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from relaax import __version__
from relaax.configuration import run_command
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError
from relaax.experiments.checks import mistakes
from relaax.experiments.diagram import mermaid
from relaax.experiments.files import experiments_in, file_of, load_experiment
from relaax.experiments.routes import HOST
from relaax.experiments.trial import Trial
from relaax.experiments.written import NamedExperiment, to_yaml
from relaax.launcher.main import (
    OnMachines,
    Target,
    add_placement,
    add_run_options,
    run_procfile,
    run_rules,
    target_of,
)
from relaax.launcher.new_application import write_new_folder
from relaax.launcher.ports import free_port, reserved
from relaax.launcher.run_record import RunRecorder
from relaax.launcher.runner import Keys
from relaax.launcher.trial_commands import ORDERLY, TrialPlace, show_logs, show_status, stop_trial
from relaax.launcher.trial_manifests import ManifestOptions, needs_of, next_steps, write_manifests
from relaax.names.paths import ETCD, NamedPlace
from relaax.net.access.process_access import INSECURE, is_allowed_to_be_insecure
from relaax.processes.directory_lock import owned
from relaax.processes.whole_numbers import natural, positive

_NAME = "relaax-experiment"

_TEMPLATE = Path(__file__).parent / "experiment_template"

#: The first port that a trial looks at.
FIRST_PORT = 7100

#: NVIDIA's driver lists its devices at once, but for the first call after the machine's start.
_LOOK_S = 30.0

#: The commands, by name.
_MEANINGS = {
    "run": "start all workers of a trial, show its progress, and wait until it is over",
    "status": "say of each process of a trial whether it runs, and how far the training is. The "
    "exit status is 0 while the trial runs, 3 when it is over or was stopped, and 1 when it failed",
    "logs": "print the log of a trial, with the name of a process in each line",
    "stop": "end a trial as Ctrl-C does in the shell that runs it, and wait for its end",
    "show": "print the experiment as YAML: this file runs in its place",
    "list": "print the names of the experiments of a file",
}

#: Those that read a file of experiments; others are about a trial that was run.
_OF_FILES = ("run", "show", "list")

#: The values of ``--on``.
_LOCAL, _RAY, _SLURM, _KUBERNETES = "local", "ray", "slurm", "kubernetes"

_RUNS_ALREADY = "stop that with relaax-experiment stop, or name another trial with -f"

_DESCRIPTION = """\
Run trials of experiments. An experiment is a class of Python that is registered, or its twin in
YAML: how many actor workers, policy workers and trainers there are, and which streams connect
them."""


def main() -> int:
    """Run the command line and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if (arguments.command is None) == (arguments.init is None):
        parser.error("name a command, or --init and a new folder")
    if arguments.init is not None:
        return run_command(_NAME, lambda: _init(arguments.init))
    return run_command(_NAME, lambda: _CARRY_OUT[arguments.command](arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_NAME, description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--init",
        type=Path,
        metavar="FOLDER",
        help="write an environment, an experiment and a README to begin with into a new folder",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, meaning in _MEANINGS.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        if name in _OF_FILES:
            command.add_argument(
                "file",
                type=Path,
                metavar="FILE",
                help="a .py or .yaml file, or its name without the ending, where it is in this "
                "folder or in examples/experiments",
            )
        if name != "list":
            default = (
                " (default: the only one of the file, or the one with its name)"
                if name in _OF_FILES
                else ""
            )
            command.add_argument(
                "-e",
                "--experiment",
                metavar="NAME",
                required=name not in _OF_FILES,
                help=f"the name of the experiment{default}",
            )
        if name not in ("list", "show"):
            _add_trial(command)
        if name == "run":
            add_run_options(command)
            _add_machines(command)
            command.add_argument(
                "--gpus",
                type=natural,
                metavar="N",
                help="give workers that ask for a GPU the first N of this machine (default: all); "
                "0 lets all run without",
            )
            command.add_argument(
                "--http-port-base",
                type=positive,
                metavar="PORT",
                help="let each worker answer /healthz, /readyz and /metrics for Prometheus at a "
                "port of its own of this machine: PORT and the next free ones",
            )
            command.add_argument(
                "--registry",
                type=_etcd,
                metavar="etcd://HOST:PORT",
                help="where inference streams are registered by name (default: at the parameter "
                "server of their policy)",
            )
            command.add_argument(
                "--wandb",
                action="store_true",
                help="give each worker a run at Weights & Biases (needs relaax[wandb]; "
                "WANDB_MODE=offline sends nothing)",
            )
        if name == "show":
            command.add_argument(
                "--diagram",
                action="store_true",
                help="print a drawing in its place: a flow chart in Mermaid, which GitHub and "
                "https://mermaid.live show",
            )
        if name == "logs":
            _add_log(command)
        if name == "stop":
            command.add_argument(
                "--timeout",
                type=float,
                default=60.0,
                metavar="SECONDS",
                help="wait so long for its end (default: %(default)g)",
            )
    return parser


def _add_trial(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-f",
        "--trial",
        default="trial1",
        metavar="NAME",
        help="the name of the trial; run starts one again that was stopped (default: %(default)s)",
    )
    command.add_argument(
        "--directory",
        type=Path,
        default=Path("training/experiments"),
        help="the folder of all trials, in EXPERIMENT/TRIAL (default: %(default)s)",
    )


def _add_machines(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--on",
        type=partial(target_of, names=(_LOCAL, _RAY, _SLURM, _KUBERNETES)),
        default=Target(_LOCAL, ""),
        metavar="ENGINE",
        help="'local' (default): on this machine; 'ray' or 'ray=ADDRESS': on a Ray cluster (pip "
        "install 'relaax[ray]'); 'slurm': in the Slurm allocation that this runs in. The machines "
        "share this folder and --directory. 'kubernetes': write manifests for kubectl, and start "
        "nothing",
    )
    command.add_argument(
        "--image",
        metavar="NAME",
        help="with --on kubernetes: the image of all pods, with RELAAX and the environments",
    )
    add_placement(command)
    command.add_argument(
        "--access",
        type=Path,
        metavar="FILE",
        help="how processes are guarded: a YAML file with keys such as --tls-cert and "
        f"--auth-token-file, or --insecure: true ({INSECURE}=1 is the same)",
    )


def _add_log(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "process", nargs="?", metavar="PROCESS", help="a name that status shows (default: all)"
    )
    command.add_argument(
        "-n", "--lines", type=positive, metavar="N", help="the last N lines (default: all)"
    )
    command.add_argument(
        "--follow", action="store_true", help="print further lines, until the trial ends"
    )


def _place(arguments: argparse.Namespace) -> TrialPlace:
    return TrialPlace(arguments.directory, arguments.experiment, arguments.trial)


def _init(folder: Path) -> int:
    files = ("environment.py", "experiment.py", "population.py", "README.md")
    texts = {name: (_TEMPLATE / name).read_text(encoding="utf-8") for name in files}
    for file in write_new_folder(folder, texts):
        print(f"wrote {file}")
    print(f"\ntrain it:\n  cd {shlex.quote(str(folder))}\n  {_NAME} run experiment.py")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    experiment = _checked(arguments)
    place = TrialPlace(arguments.directory, experiment.name, arguments.trial)
    if arguments.on.name == _KUBERNETES:
        return _write_manifests(arguments, experiment, place)
    if arguments.image is not None:
        raise ConfigurationError("--image: has no effect without --on kubernetes")
    taken: list[int] = []
    resources = ExitStack()

    def next_port(first: int = FIRST_PORT) -> int:
        while True:
            taken.append(free_port(HOST, first, taken))
            holder = reserved(taken[-1])
            if holder is not None:
                resources.enter_context(holder)
                return taken[-1]

    def ports_in_a_row(first: int, count: int) -> list[int]:
        found = [next_port(first)]
        while len(found) < count:
            port = next_port(first)
            found = [*found, port] if port == found[-1] + 1 else [port]
        return found

    is_on_cluster, first = arguments.on.name != _LOCAL, arguments.http_port_base
    if first is not None and is_on_cluster:
        raise ConfigurationError(f"--http-port-base {first}: the ports are of this machine alone")
    with resources, owned(place.folder, f"{_NAME} run", wait_s=0, advice=_RUNS_ALREADY):
        trial = Trial(
            experiment,
            place.folder,
            next_port,
            _gpus_of_cluster(arguments) if is_on_cluster else _gpus(arguments.gpus),
            arguments.registry,
            _access(arguments),
            is_on_cluster=is_on_cluster,
            has_wandb=arguments.wandb,
            http_ports=None if first is None else partial(ports_in_a_row, first),
        )
        procfile = trial.write()
        print(f"{place} in {place.folder}", flush=True)
        for name, addresses in trial.for_operators.items():
            shown = " to ".join(dict.fromkeys((addresses[0], addresses[-1])))
            print(f"{name} answers operators at {shown}", flush=True)
        resources.enter_context(_found_by_prometheus(trial, place.targets))
        record = RunRecorder(place.record)
        keys = {
            name: Keys(info.host_key, tuple(info.watch_keys))
            for name, info in trial.information().items()
            if info.host_key or info.watch_keys
        }
        rules = run_rules(arguments)
        timeout_s = rules.timeout_s or experiment.config.timeout_seconds
        rules = replace(rules, timeout_s=timeout_s, keys=keys)
        machines = _machines(arguments, trial) if is_on_cluster else None
        run = partial(run_procfile, procfile, place.log, rules, record, machines)
        status = run_command(_NAME, run)
        record.note_status(status)
        failure = None if status in ORDERLY else record.failure()
        if failure is not None:
            print(f"{_NAME}: error: {failure}", file=sys.stderr)
        return status


@contextmanager
def _found_by_prometheus(trial: Trial, file: Path) -> Iterator[None]:
    """Let Prometheus find the processes of a trial by a file as long as they run."""
    file.unlink(missing_ok=True)  # of a run that was killed
    if trial.for_operators:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(trial.targets(), indent=1), encoding="utf-8")
        new.replace(file)
        print(f"Prometheus finds them by {file}", flush=True)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _write_manifests(
    arguments: argparse.Namespace, experiment: NamedExperiment, place: TrialPlace
) -> int:
    """Write what starts a trial in Kubernetes, and say how."""
    for option in ("restart", "ignore_worker_error"):
        if getattr(arguments, option):
            raise ConfigurationError(
                f"--{option.replace('_', '-')}: no effect with --on kubernetes: its Jobs start "
                "processes that fail again, and the others run on"
            )
    for option in ("wandb", "http_port_base"):
        if getattr(arguments, option):
            raise ConfigurationError(
                f"--{option.replace('_', '-')}: no effect with --on kubernetes"
            )
    if arguments.image is None:
        raise ConfigurationError("--on kubernetes needs --image NAME, with RELAAX and environments")
    options = ManifestOptions(
        arguments.image,
        arguments.timeout or experiment.config.timeout_seconds,
        arguments.placement,
        _gpus_of_cluster(arguments),
        arguments.registry,
        _access(arguments),
    )
    with owned(place.folder, f"{_NAME} run", wait_s=0, advice=_RUNS_ALREADY):
        write_manifests(place, experiment, options)
    print(next_steps(place))
    return 0


def _machines(arguments: argparse.Namespace, trial: Trial) -> OnMachines:
    """Return the machines of a cluster, and what each process of a trial needs there."""
    return OnMachines(arguments.on, arguments.placement, trial.counts(), needs_of(trial))


def _access(arguments: argparse.Namespace) -> dict[str, Any] | str | None:
    """Return the section ``access`` of all processes, or its file, where one is given.

    ConfigurationError where other machines would be refused.
    """
    if arguments.access is not None and arguments.on.name == _KUBERNETES:
        return dict(read_yaml(arguments.access))  # its paths are those in pods
    if arguments.access is not None:
        return str(arguments.access.resolve())
    if is_allowed_to_be_insecure():
        return {"--insecure": True}
    if arguments.on.name != _LOCAL:
        raise ConfigurationError(
            f"--on {arguments.on.name}: servers listen where other machines reach them: give "
            "--access FILE with the files that 'relaax-certificates FOLDER HOST ...' makes, or "
            f"with '--insecure: true', or set {INSECURE}=1, on a network where everybody may use "
            "these ports"
        )
    return None


def _etcd(text: str) -> str:
    try:
        place = NamedPlace.parse(f"{text}/name")
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if place.scheme != ETCD:
        raise argparse.ArgumentTypeError(f"must be {ETCD}HOST:PORT, is {text!r}")
    return text


def _gpus_of_cluster(arguments: argparse.Namespace) -> list[str] | None:
    """Return no names of GPUs, which a cluster chooses; None where all run without."""
    if arguments.gpus:
        raise ConfigurationError(
            f"--gpus {arguments.gpus}: no effect with --on {arguments.on.name}, whose machines "
            "give GPUs to workers that ask for them; --gpus 0 lets all run without"
        )
    return None if arguments.gpus == 0 else []


def _gpus(count: int | None) -> list[str] | None:
    """Return the first ``count`` GPUs that this process sees, by default all; None for 0."""
    if count == 0:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        seen = [each.strip() for each in visible.split(",") if each.strip() not in ("", "-1")]
    else:
        seen = [str(number) for number in range(_gpus_of_machine())]
    if count is not None and count > len(seen):
        raise ConfigurationError(f"--gpus {count}: this machine shows {len(seen)} GPUs")
    return seen[:count]


def _gpus_of_machine() -> int:
    """Return the number of GPUs that NVIDIA's driver lists; 0 without one."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"],  # noqa: S607  # wherever it is installed
            capture_output=True,
            text=True,
            timeout=_LOOK_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def _show(arguments: argparse.Namespace) -> int:
    shown = mermaid if arguments.diagram else to_yaml
    sys.stdout.write(shown(_checked(arguments)))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for name in experiments_in(file_of(arguments.file)):
        print(name)
    return 0


def _checked(arguments: argparse.Namespace) -> NamedExperiment:
    """Return the experiment; ConfigurationError with each mistake in it."""
    experiment = load_experiment(file_of(arguments.file), arguments.experiment)
    found = mistakes(experiment)
    if found:
        raise ConfigurationError("; ".join(found))
    return experiment


_CARRY_OUT: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "show": _show,
    "list": _list,
    "status": lambda arguments: show_status(_place(arguments)),
    "logs": lambda arguments: show_logs(
        _place(arguments), arguments.process, arguments.lines, arguments.follow
    ),
    "stop": lambda arguments: stop_trial(_place(arguments), arguments.timeout),
}


if __name__ == "__main__":
    sys.exit(main())
