"""Finds the servers and the environment's program in a Procfile."""

import re
import runpy
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from honcho.environ import parse_procfile

from relaax.configuration.start_folder import require_start_folder
from relaax.errors import ConfigurationError

PARAMETER_SERVER, RLX_SERVER = "relaax-parameter-server", "relaax-rlx-server"
LEARNER = "relaax-learner"

_SERVERS = (PARAMETER_SERVER, RLX_SERVER, LEARNER)

_NOT_ONE_PROCESS = {
    "relaax-actor": "its environment connects to no server; write a line with an RLX server and a "
    "program that connects to it",
    "relaax-replay-server": "in one process the learner has the replay; leave the line out",
}

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Program:
    """A Python program: a file, or a module, and its arguments."""

    file: Path | None
    module: str | None
    arguments: Sequence[str]

    def run(self) -> int:
        """Run it as ``python`` does, and return its exit status; what it raises is raised."""
        argv, path = sys.argv, list(sys.path)
        sys.argv = [str(self.file or self.module), *self.arguments]
        try:
            if self.file is None:
                runpy.run_module(str(self.module), run_name="__main__", alter_sys=True)
            else:
                file = self.file.resolve()
                sys.path.insert(0, str(file.parent))
                runpy.run_path(str(file), run_name="__main__")
        except SystemExit as end:
            return _status_of(end)
        finally:
            sys.argv, sys.path[:] = argv, path
        return 0


def _status_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


@dataclass(frozen=True)
class Processes:
    """What a Procfile starts, as far as one process has room for it."""

    #: The flags of the servers, by command.
    servers: Mapping[str, list[str]]
    environment: Program
    #: The line of the environment.
    line: str


def read_processes(path: Path, settings: Sequence[str] = ()) -> Processes:
    """Return what the Procfile ``path`` starts, or one that names the YAML file ``path``.

    All servers are told the ``settings`` of ``--set``.

    Several Procfiles may name a YAML file, and some of them start servers alone: the first one that
    can be run in one process is taken. ConfigurationError if there is none.
    """
    found = _processes_at(path)
    further = [word for setting in settings for word in ("--set", setting)]
    servers = {name: [*flags, *further] for name, flags in found.servers.items()}
    return replace(found, servers=servers)


def _processes_at(path: Path) -> Processes:
    if path.suffix not in (".yaml", ".yml"):
        return _processes_of(path)
    refusals = []
    for procfile in _procfiles_that_name(path):
        try:
            return _processes_of(procfile)
        except ConfigurationError as error:
            refusals.append(str(error))
    if not refusals:
        raise ConfigurationError(
            f"--serial: no Procfile beside {path} names it: give the Procfile, which says which "
            "environment is run"
        )
    raise ConfigurationError("; ".join(refusals))


def _processes_of(procfile: Path) -> Processes:
    """Return what a Procfile starts; ConfigurationError if one process cannot run it."""
    try:
        lines: dict[str, str] = dict(parse_procfile(procfile.read_text("utf-8")).processes)
    except (OSError, UnicodeDecodeError, AssertionError) as error:
        raise ConfigurationError(f"cannot read {procfile}: {error}") from error
    require_start_folder(procfile, lines.values())
    servers: dict[str, list[str]] = {}
    programs: dict[str, Program] = {}
    for name, command in lines.items():
        words = _words(command)
        called = Path(words[0]).name if words else ""
        if called in _NOT_ONE_PROCESS:
            raise ConfigurationError(f"--serial: {procfile}: {name}: {_NOT_ONE_PROCESS[called]}")
        if called in _SERVERS:
            if called in servers:
                raise ConfigurationError(
                    f"--serial: {procfile}: {name}: a second {called}: one process has one"
                )
            servers[called] = words[1:]
        elif (program := _python_program(words)) is not None:
            programs[name] = program
    for needed in (PARAMETER_SERVER, RLX_SERVER):
        if needed not in servers:
            raise ConfigurationError(f"--serial: {procfile} has no line with {needed}")
    for name, program in programs.items():
        if any(word.partition("=")[0] == "--rlx-server" for word in program.arguments):
            return Processes(servers, program, name)
    raise ConfigurationError(
        f"--serial: {procfile} has no environment: a line 'env: python FILE --rlx-server ...'"
    )


def _procfiles_that_name(path: Path) -> list[Path]:
    """Return the Procfiles with the name of a YAML file: those beside it, then ../Procfiles."""
    places = (path.parent, path.parent.parent / "Procfiles")
    found = [p for place in places for p in sorted(place.glob("*Procfile")) if p.is_file()]
    return [procfile for procfile in found if path.name in _words_of_paths(procfile)]


def _words_of_paths(procfile: Path) -> list[str]:
    return re.findall(r"[^\s/]+", procfile.read_text("utf-8", errors="replace"))


def _words(command: str) -> list[str]:
    """Return the words of a command, without ``exec`` and assignments in front of it."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"--serial: {command}: {error}") from error
    while words and (words[0] == "exec" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words


def _python_program(words: list[str]) -> Program | None:
    """Return the Python program that ``words`` start; None if they start something else."""
    if not words:
        return None
    if re.fullmatch(r"python[\d.]*", Path(words[0]).name):
        words = words[1:]
        while words and words[0] in ("-u", "-O", "-B"):
            words = words[1:]
        if words[:1] == ["-m"] and len(words) > 1:
            return Program(None, words[1], words[2:])
        return Program(Path(words[0]), None, words[1:]) if words else None
    file = Path(words[0])
    if (
        file.is_file()
        and file.read_bytes()[:64].startswith(b"#!")
        and b"python" in (file.read_bytes()[:64])
    ):
        return Program(file, None, words[1:])
    return None
