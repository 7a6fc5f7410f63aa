"""The processes of a Procfile where they run on many machines: how many, and who is told of whom.

On one machine a Procfile and its YAML file say ``localhost:7000``. Elsewhere a server listens at an
address that is known when its machine is, and all others are told that one in the place of it.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from relaax.address import Address, Addresses
from relaax.configuration import (
    Configuration,
    load_actor,
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
)
from relaax.configuration.access_file import with_access_file
from relaax.configuration.algorithm_location import locate_algorithm
from relaax.configuration.load import with_file_beside
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError
from relaax.processes.run_variables import COPY, LINE

_PARAMETER_SERVER = "relaax-parameter-server"

#: By command: what reads its arguments.
_LOADERS: Mapping[str, Callable[[Sequence[str]], Configuration[Any]]] = {
    _PARAMETER_SERVER: load_parameter_server,
    "relaax-rlx-server": load_rlx_server,
    "relaax-learner": load_learner,
    "relaax-replay-server": load_replay_server,
    "relaax-actor": load_actor,
}

#: Of all others each process has a name of its own in the YAML file, or there is only one.
_MAY_BE_COPIED = ("relaax-rlx-server", "relaax-actor", "")

#: An address that no other process is told: operators know it as it is written.
_FOR_OPERATORS = "--http-bind"

#: What a shell takes for the end of a command's arguments.
_OPERATOR = re.compile(r"[();<>|&]+")

#: After such a one a shell takes the next word for a program.
_SEPARATOR = re.compile(r"[();|&]+")

#: And after such a word, or an assignment, that is in the place of one.
_BEFORE_A_PROGRAM = re.compile(r"exec|env|[A-Za-z_]\w*=.*", re.DOTALL)

#: What of ``2>&1`` would be taken for an argument.
_DESCRIPTOR = re.compile(r"(?<=\s)\d+(?=[<>])")

#: How this machine is written, by those that listen and by those that connect.
_ANY, _THIS_MACHINE = ("0.0.0.0", "::"), ("localhost", "127.0.0.1")  # noqa: S104


class Placement(Enum):
    """How processes are distributed over machines."""

    SPREAD = "spread"
    PACK = "pack"


@dataclass(frozen=True)
class Needs:
    """Cores, GPUs and GiB of memory; 0 for nothing that is kept for it."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory_gib: float = 0.0


@dataclass(frozen=True)
class Planned:
    """A process that is to be started: a line of the Procfile, or one of its copies."""

    #: Of the line, with a number where there are several.
    name: str
    #: The line's own.
    line: str
    #: The first is 0.
    copy: int
    command: str
    #: The program, if it is one of RELAAX.
    program: str = ""
    #: Where it listens, as far as this machine is concerned.
    listens: Address | None = None
    #: The YAML file that it reads, as the command names it.
    config: str | None = None
    #: Which addresses it has, by option, written or not.
    addresses: Mapping[str, Address | Addresses] = field(default_factory=dict)
    #: Where it answers operators: a copy at a port of its own, one further for each.
    for_operators: Address | None = None

    def variables(self) -> dict[str, str]:
        """Return what its environment has beside all others'."""
        return {COPY: str(self.copy), LINE: self.line}


@dataclass(frozen=True)
class Told:
    """What a process runs when all addresses are known."""

    name: str
    command: str
    #: What is to be written before it starts, by path.
    files: Mapping[Path, str]


def as_written(lines: Mapping[str, str]) -> list[Planned]:
    """Return the processes of a Procfile's ``lines`` where nothing of them is to be changed."""
    return [Planned(name, name, 0, command) for name, command in lines.items()]


def known(lines: Mapping[str, str]) -> list[Planned]:
    """Return what is known of the processes of ``lines`` that this machine's shell starts itself.

    What is wrong with one it says itself.
    """
    found = []
    for name, command in lines.items():
        with suppress(ConfigurationError, OSError):
            if program_in(command, anywhere=False) is not None:
                found.append(_planned(name, name, 0, command))
    return found


def planned(lines: Mapping[str, str], counts: Mapping[str, int]) -> list[Planned]:
    """Return the processes of a Procfile's ``lines``, of which some are started several times.

    ConfigurationError for a count of a line that is not there or cannot have one, and for what a
    server refuses.
    """
    for name in counts:
        if name not in lines:
            raise ConfigurationError(
                f"--concurrency: the Procfile has no {name!r}; it has {', '.join(lines)}"
            )
    found = []
    for name, command in lines.items():
        count = counts.get(name, 1)
        for copy in range(count):
            numbered = name if count == 1 else f"{name}.{copy + 1}"
            found.append(_planned(numbered, name, copy, command))
        if count > 1 and found[-1].program not in _MAY_BE_COPIED:
            raise ConfigurationError(
                f"--concurrency: {name} runs {found[-1].program}, of which each needs a line and "
                f"an address of its own; RLX servers, actors and environments may have copies"
            )
    return found


def told(processes: Sequence[Planned], places: Mapping[str, Address], folder: Path) -> list[Told]:
    """Return what each process runs, given by name where those listen that are servers.

    Of a server that has copies each process is told one, in turn. YAML files are to be written into
    ``folder``.
    """
    return [_told(process, _Book(process, processes, places), folder) for process in processes]


def program_in(command: str, *, anywhere: bool = True) -> tuple[str, list[str]] | None:
    """Return which program of RELAAX a shell command runs, and its arguments; None if none.

    Unless it may be ``anywhere``, the shell starts it itself: it is no argument of another program,
    such as ssh, which may start it on another machine.
    """
    words, is_started = list(_words(command)), True
    for number, word in enumerate(words):
        if Path(word).name in _LOADERS and (anywhere or is_started):
            return Path(word).name, _arguments(words[number + 1 :])
        follows = is_started and _BEFORE_A_PROGRAM.fullmatch(word)
        is_started = bool(follows or _SEPARATOR.fullmatch(word))
    return None


def configured(command: str, *, anywhere: bool = True) -> tuple[str, Configuration[Any]] | None:
    """Return which program of RELAAX a shell command runs, and what it reads; None if none.

    ConfigurationError for what that program refuses. ``anywhere`` is that of ``program_in``.
    """
    found = program_in(command, anywhere=anywhere)
    return None if found is None else (found[0], _read(*found))


def begins_training(command: str) -> bool:
    """Return whether a shell command runs the server that a training is known by.

    A replica, and a shard that is not the first one, belong to the training of another server.
    """
    if _PARAMETER_SERVER not in command:
        return False
    try:
        read = configured(command)
    except ConfigurationError:
        read = None
    if read is None or read[0] != _PARAMETER_SERVER:  # a shell makes its arguments
        return "--replica-of" not in command
    options: Any = read[1].options
    return options.replica_of is None and (options.shard is None or options.shard.is_first)


def _read(program: str, arguments: Sequence[str]) -> Configuration[Any]:
    """Return what a program reads; ConfigurationError where it would end with its usage."""
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            return _LOADERS[program](arguments)
    except SystemExit as end:
        reason = said.getvalue().rpartition(": error: ")[2].strip()
        raise ConfigurationError(reason if end.code else "it starts nothing") from end


def _planned(name: str, line: str, copy: int, command: str) -> Planned:
    found = program_in(command)
    if found is None:
        return Planned(name, line, copy, command)
    program, arguments = found
    options = _read(program, arguments).options
    addresses = {
        str(field.alias): value
        for name, field in type(options).model_fields.items()
        if isinstance(value := getattr(options, name), Address | Addresses)
    }
    for_operators = addresses.pop(_FOR_OPERATORS, None)
    # A shard listens at its place among all.
    place: Any = getattr(options, "place", addresses.get("--bind"))
    return Planned(
        name,
        line,
        copy,
        command,
        program,
        place,
        _config(arguments),
        addresses,
        for_operators if isinstance(for_operators, Address) else None,
    )


def _words(command: str) -> Iterator[str]:
    lexer = shlex.shlex(_DESCRIPTOR.sub("", command), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        yield from lexer
    except ValueError as error:
        raise ConfigurationError(f"{command!r} is no shell command: {error}") from error


def _arguments(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        if _OPERATOR.fullmatch(word):
            break
        found.append(word)
    return found


def _config(arguments: Sequence[str]) -> str:
    for number, argument in enumerate(arguments):
        if argument == "--config":
            return arguments[number + 1]
        if argument.startswith("--config="):
            return argument.partition("=")[2]
    return arguments[0]  # of a command that takes the file first


class _Book:
    """Which address stands where another one was written, for one process."""

    def __init__(
        self, process: Planned, processes: Sequence[Planned], places: Mapping[str, Address]
    ) -> None:
        listening: dict[Address, list[str]] = {}
        for other in processes:
            if other.listens is not None:
                listening.setdefault(other.listens, []).append(other.name)
        self._new: dict[str, str] = {}
        for written, names in listening.items():
            own = process.name if process.name in names else names[process.copy % len(names)]
            is_here = written.host in (*_ANY, *_THIS_MACHINE)
            for host in {written.host, *(_THIS_MACHINE if is_here else ())}:
                self._new[str(Address(host, written.port))] = str(places[own])
        if process.for_operators is not None and process.copy:
            written = process.for_operators
            self._new[str(written)] = str(Address(written.host, written.port + process.copy))
        alternatives = "|".join(map(re.escape, sorted(self._new, key=len, reverse=True)))
        self._pattern = re.compile(rf"(?<![\w.:-])(?:{alternatives})(?![\w.-])")

    def knows(self, value: Address | Addresses) -> bool:
        """Return whether a process listens at an address, or at one of several."""
        several = value if isinstance(value, Addresses) else (value,)
        return any(str(each) in self._new for each in several)

    def in_text(self, text: str) -> str:
        """Return a text with the new addresses."""
        return self._pattern.sub(lambda found: self._new[found[0]], text) if self._new else text

    def in_option(self, value: Address | Addresses) -> str | list[str]:
        """Return the value of an option, as a YAML file has it, with the new addresses."""
        if isinstance(value, Addresses) and len(value) > 1:
            return [self.in_text(str(each)) for each in value]
        return self.in_text(str(value))

    def in_values(self, value: Any) -> Any:
        """Return what a YAML file holds with the new addresses."""
        if isinstance(value, dict):
            return {key: self.in_values(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.in_values(each) for each in value]
        return self.in_text(value) if isinstance(value, str) else value


def _told(process: Planned, book: _Book, folder: Path) -> Told:
    command = book.in_text(process.command)
    if process.config is None:
        return Told(process.name, command, {})
    written = Path(process.config)
    # The file keeps its name, by which a run is known.
    path = folder / process.name / written.name
    content = book.in_values(with_access_file(read_yaml(written), written))
    section = dict(content.get(process.program) or {})
    for key, value in process.addresses.items():
        if book.knows(value):  # it may be a default that is not written
            section[key] = book.in_option(value)
    if process.listens is not None:
        section["--bind"] = book.in_text(str(process.listens))
    algorithm = with_file_beside(written, content["algorithm"])
    if "path" in algorithm:
        algorithm["path"] = str(locate_algorithm(algorithm, written))
    content = {**content, process.program: section, "algorithm": algorithm}
    command = _with_other_file(command, process.config, path)
    return Told(process.name, command, {path: yaml.safe_dump(content, sort_keys=False)})


def _with_other_file(command: str, written: str, path: Path) -> str:
    """Return the command with another YAML file, whose path a shell takes for one word.

    ConfigurationError where the command does not show the file as the program gets it: with a
    backslash, or with quotes within.
    """
    pattern = re.compile(rf"(?<![^\s=])(['\"]?){re.escape(written)}\1(?![^\s();<>|&])")
    replaced, count = pattern.subn(lambda _: shlex.quote(str(path)), command)
    if not count:
        raise ConfigurationError(
            f"{command!r}: cannot put another file in the place of {written!r}; write its name "
            f"without backslashes, and quotes around all of it or none"
        )
    return replaced
