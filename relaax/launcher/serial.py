"""Finds the servers and the environment's program in a Procfile, for one process."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relaax.configuration.commands import (
    ACTOR,
    INFERENCE_SERVER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
    RLX_SERVER,
)
from relaax.errors import ConfigurationError
from relaax.launcher.check import require_start_folder
from relaax.launcher.described import Described, described, read_procfile
from relaax.launcher.shell_words import ShellCommand, python_program
from relaax.server.serial.processes import Processes, Program

_NOT_ONE_PROCESS = {
    ACTOR.name: "its environment connects to no server; write a line with an RLX server and a "
    "program that connects to it",
    INFERENCE_SERVER.name: "in one process the worker has the policy; leave the line out",
    REPLAY_SERVER.name: "in one process the learner has the replay; leave the line out",
}


@dataclass(frozen=True)
class OneProcess:
    """The lines of a Procfile that one process runs."""

    servers: Sequence[Described]
    environment: Program
    #: The line of the environment.
    line: str

    def parts(self) -> Processes:
        """Return the parts that run, of servers whose configurations can be read."""
        found = {each.program: each.configuration for each in self.servers if each.configuration}
        return Processes(found, self.environment, self.line)


def one_process(path: Path, settings: Sequence[str] = ()) -> OneProcess:
    """Return the processes of the Procfile ``path``, or of a Procfile that names a YAML file.

    Several Procfiles may name a YAML file, and some of them start servers alone: the first one
    that can be run in one process is taken. ConfigurationError if none can.
    """
    if path.suffix not in (".yaml", ".yml"):
        return _found(path, settings)
    refusals = []
    for procfile in _procfiles_that_name(path):
        try:
            return _found(procfile, settings)
        except ConfigurationError as error:
            refusals.append(str(error))
    if not refusals:
        raise ConfigurationError(
            f"--serial: no Procfile beside {path} names it: give the Procfile, which says which "
            "environment is run"
        )
    raise ConfigurationError("; ".join(refusals))


def _found(procfile: Path, settings: Sequence[str]) -> OneProcess:
    processes = described(read_procfile(procfile), settings)
    require_start_folder(procfile, processes)
    servers: dict[str, Described] = {}
    for process in processes:
        where = f"--serial: {procfile}: {process.name}"
        if process.command is None:
            raise ConfigurationError(f"{where}: {process.mistake}")
        if not process.is_started_here or not process.program:
            continue
        if process.program in _NOT_ONE_PROCESS:
            raise ConfigurationError(f"{where}: {_NOT_ONE_PROCESS[process.program]}")
        if process.program in servers:
            raise ConfigurationError(f"{where}: a second {process.program}: one process has one")
        servers[process.program] = process
    for needed in (PARAMETER_SERVER.name, RLX_SERVER.name):
        if needed not in servers:
            raise ConfigurationError(f"--serial: {procfile} has no line with {needed}")
    programs = [
        (not process.plays, program, process.line)
        for process in processes
        if process.command is not None and not process.program
        if (program := _program(process.command)) is not None
    ]
    if not programs:
        raise ConfigurationError(
            f"--serial: {procfile} has no environment: a line 'env: python FILE'"
        )
    # Any program of Python may have the address in its code; one that is told it surely has one.
    is_guessed, program, line = min(programs, key=lambda each: each[0])
    if is_guessed and len(programs) > 1:
        lines = ", ".join(each[2] for each in programs)
        raise ConfigurationError(
            f"--serial: {procfile}: which of {lines} plays? The one with --rlx-server does"
        )
    return OneProcess(list(servers.values()), program, line)


def _procfiles_that_name(path: Path) -> list[Path]:
    """Return the Procfiles with the name of a YAML file: those beside it, then ../Procfiles."""
    places = (path.parent, path.parent.parent / "Procfiles")
    found = [p for place in places for p in sorted(place.glob("*Procfile")) if p.is_file()]
    return [
        procfile
        for procfile in found
        if path.name in re.findall(r"[^\s/]+", procfile.read_text("utf-8", errors="replace"))
    ]


def _program(command: ShellCommand) -> Program | None:
    """Return the Python program that a command runs; None for another one."""
    words = command.started()
    program = python_program(words)
    if program is not None or not words:
        return program
    file = Path(words[0])
    is_python = file.is_file() and re.match(rb"#!.*python", file.read_bytes()[:64])
    return Program(file, None, words[1:]) if is_python else None
