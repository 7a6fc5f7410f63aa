"""The processes of a Procfile, described once for all that look at them and start them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.configuration import AlgorithmSection, Configuration
from relaax.configuration.actor_agents import read_agents
from relaax.configuration.addresses import known_addresses, with_addresses
from relaax.configuration.commands import (
    ACTOR,
    INFERENCE_SERVER,
    LEARNER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
    RLX_SERVER,
    Command,
)
from relaax.configuration.load import load
from relaax.errors import ConfigurationError
from relaax.launcher.shell_words import ShellCommand
from relaax.processes.run_variables import COPY, INCARNATION, LINE

#: The Procfile of a folder.
DEFAULT_PROCFILE = Path("Procfile")

#: The ways to a folder that can be trained.
_WITHOUT_PROCFILE = (
    "; relaax-new makes a folder with a Procfile, and --new-algorithm DIR an algorithm "
    "to start from"
)

#: The same where another Procfile was named.
_PROCFILE_ELSEWHERE = (
    "; those in Procfiles/ are of RELAAX's checkout: start them in that folder" + _WITHOUT_PROCFILE
)


#: A line of a Procfile.
_LINE = re.compile(r"(?P<name>[\w-]+):\s*(?P<command>\S.*)", re.ASCII)

#: The programs whose lines are read, by name.
_PROGRAMS: Mapping[str, Command[Any]] = {
    each.name: each
    for each in (PARAMETER_SERVER, RLX_SERVER, LEARNER, REPLAY_SERVER, INFERENCE_SERVER, ACTOR)
}

#: Of all others each process has a name of its own in the YAML file, or there is only one.
_MAY_BE_COPIED = (RLX_SERVER.name, ACTOR.name, "")

#: Programs that are stopped after all others, which deliver to them or ask them; learners publish.
_TURNS = {
    LEARNER.name: 1,
    INFERENCE_SERVER.name: 1,
    REPLAY_SERVER.name: 2,
    PARAMETER_SERVER.name: 2,
}

#: The option with which an environment's program is told where its RLX server is.
TO_RLX_SERVER = "--rlx-server"

#: An address that no other process is told: operators know it as it is written.
FOR_OPERATORS = "--http-bind"

#: With ``--agents`` the file has these of each group, and another option says where servers are.
_OF_GROUPS = ("--learner", "--parameter-server")
MOVED = "--moved"

#: Hosts of this machine: in addresses to connect to, and those in addresses to listen at, too.
THIS_MACHINE = ("localhost", "127.0.0.1")
HERE = (*THIS_MACHINE, "::1", "0.0.0.0", "::")  # noqa: S104


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
class Described:
    """A process: a line of the Procfile, or one of its copies."""

    #: The line's, with a number where there are several copies.
    name: str
    line: str
    text: str
    #: The words; None where no shell takes the command.
    command: ShellCommand | None = None
    #: The first copy is 0.
    copy: int = 0
    needs: Needs = Needs()
    #: The program, if it is one of RELAAX, and the number of its word.
    program: str = ""
    word: int = 0
    configuration: Configuration[Any] | None = field(default=None, repr=False)
    #: Why it cannot be read.
    mistake: str = ""

    @property
    def is_started_here(self) -> bool:
        """Whether the shell starts the program itself: ssh, say, may start it elsewhere."""
        return self.command is not None and self.command.words[self.word].is_program

    @property
    def is_as_written(self) -> bool:
        """Whether it reads its arguments as they are written, in the folder of the launcher."""
        if self.command is None:
            return True
        return self.is_started_here and not self.command.is_made_by_a_shell

    @property
    def plays(self) -> bool:
        """Whether it plays environments: it is told where its RLX server is."""
        if self.command is None:
            return False
        quoted = (word.value for word in self.command.words if " " in word.value)  # for ssh, say
        return bool(self.command.values(TO_RLX_SERVER)) or any(
            TO_RLX_SERVER in text for text in quoted
        )

    @property
    def algorithm(self) -> AlgorithmSection | None:
        """The algorithm's section of a program of RELAAX whose configuration can be read."""
        return None if self.configuration is None else self.configuration.algorithm

    @property
    def options(self) -> Any:
        """The options of a program of RELAAX whose configuration can be read."""
        return None if self.configuration is None else self.configuration.options

    @property
    def turn_to_stop(self) -> int:
        """When it is stopped: processes with lower numbers are first."""
        return _TURNS.get(self.program, 0)

    @property
    def listens(self) -> Address | None:
        """Where it listens, as it is written: a shard at its place among all.

        A learner that draws from replay servers does not listen.
        """
        if self.program == LEARNER.name and getattr(self.options, "replay_servers", None):
            return None
        place: Address | None = getattr(self.options, "place", getattr(self.options, "bind", None))
        return place

    @property
    def for_operators(self) -> list[Address]:
        """Where it answers operators: each copy, and each of its actors, one port further."""
        written: Address | None = getattr(self.options, "http_bind", None)
        if written is None:
            return []
        actors = getattr(self.options, "actors", 1)
        first = written.port + self.copy * actors
        return [Address(written.host, port) for port in range(first, first + actors)]

    def addresses(self) -> dict[str, tuple[Address, ...]]:
        """Return by option the addresses of other processes, written or not."""
        found: dict[str, tuple[Address, ...]] = {}
        if not self.program and self.command is not None:
            with suppress(ConfigurationError):  # the program says so
                servers = self.command.values(TO_RLX_SERVER)
                found[TO_RLX_SERVER] = tuple(map(Address.parse, servers))
        for name, option in type(self.options).model_fields.items() if self.options else ():
            value = getattr(self.options, name)
            several = value if isinstance(value, tuple) else (value,)
            if several and all(isinstance(each, Address) for each in several):
                found[str(option.alias)] = several
        others = ["--bind", FOR_OPERATORS, "--proxy"]
        if getattr(self.options, "agents", None) is not None:
            others += _OF_GROUPS
        for each in others:
            found.pop(each, None)
        return found

    def begins_training(self) -> bool:
        """Return whether it is the server that a training is known by.

        A replica, and a shard that is not the first one, belong to the training of another server.
        """
        if PARAMETER_SERVER.name not in self.text:
            return False
        if self.program != PARAMETER_SERVER.name or self.options is None:
            return "--replica-of" not in self.text  # a shell makes its arguments
        shard = self.options.shard
        return self.options.replica_of is None and (shard is None or shard.is_first)

    def variables(self, common: Mapping[str, str], number: int) -> dict[str, str]:
        """Return its variables at its start of this ``number``: ``common`` ones, and its own."""
        incarnation = int(common.get(INCARNATION, 0)) + number
        return {**common, COPY: str(self.copy), LINE: self.line, INCARNATION: str(incarnation)}


def read_procfile(path: Path) -> dict[str, str]:
    """Return the commands of a Procfile by name; ConfigurationError for a line of another form."""
    if path.suffix in (".yaml", ".yml"):
        raise ConfigurationError(
            f"{path} is a configuration, and no Procfile: give the Procfile whose lines name it"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = ""
        if isinstance(error, FileNotFoundError):
            hint = _WITHOUT_PROCFILE if path == DEFAULT_PROCFILE else _PROCFILE_ELSEWHERE
        raise ConfigurationError(f"cannot read {path}: {error.strerror}{hint}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: {error.reason}") from error
    lines: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            if line.strip() and not line.lstrip().startswith("#"):
                raise ConfigurationError(
                    f"{path}: line {number} must be 'name: command', is {line!r}"
                )
            continue
        if found["name"] in lines:
            raise ConfigurationError(
                f"{path}: process names must be unique, and {found['name']!r} stands twice"
            )
        lines[found["name"]] = found["command"]
    if not lines:
        raise ConfigurationError(f"{path} names no process; a line must be 'name: command'")
    return lines


def described(lines: Mapping[str, str], settings: Sequence[str] = ()) -> list[Described]:
    """Return the process of each line; RELAAX's programs are told the ``settings`` of ``--set``."""
    return [_described(name, text, settings) for name, text in lines.items()]


def _described(name: str, text: str, settings: Sequence[str]) -> Described:
    try:
        command = ShellCommand.parse(text)
    except ConfigurationError as error:
        return Described(name, name, text, mistake=str(error))
    found = Described(name, name, text, command)
    number = next((n for n, w in enumerate(command.words) if Path(w.value).name in _PROGRAMS), None)
    if number is None:
        return found
    program = Path(command.words[number].value).name
    further = tuple(word for setting in settings for word in ("--set", setting))
    command = command.with_arguments(number, further)
    found = replace(found, text=command.text, command=command, program=program, word=number)
    try:
        arguments = [word.value for word in command.arguments(number)]
        return replace(found, configuration=_read(program, arguments))
    except ConfigurationError as error:
        return replace(found, mistake=str(error))


def _read(program: str, arguments: Sequence[str]) -> Configuration[Any]:
    """Return the configuration of a program; ConfigurationError where it would show its usage."""
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(said):
            return load(_PROGRAMS[program], arguments)
    except SystemExit as end:
        reason = said.getvalue().rpartition(": error: ")[2].strip()
        raise ConfigurationError(reason if end.code else "it starts nothing") from end


def require_lines(option: str, names: Iterable[str], processes: Sequence[Described]) -> None:
    """Raise ConfigurationError for names in an option that no line has."""
    lines = [process.line for process in processes]
    for name in names:
        if name not in lines:
            raise ConfigurationError(
                f"--{option}: the Procfile has no {name!r}; it has {', '.join(lines)}"
            )


def copied(
    processes: Sequence[Described], counts: Mapping[str, int], needs: Mapping[str, Needs]
) -> list[Described]:
    """Return the processes, by their lines some of them several times, with their needs.

    ConfigurationError for a count of a line that is not there or cannot have copies, and for
    arguments that a server refuses.
    """
    require_lines("concurrency", counts, processes)
    found = []
    for process in processes:
        count = counts.get(process.line, 1)
        if count and process.mistake:
            raise ConfigurationError(process.mistake)
        if count > 1 and process.program not in _MAY_BE_COPIED:
            raise ConfigurationError(
                f"--concurrency: {process.line} runs {process.program}, of which each needs a line "
                "and an address of its own; RLX servers, actors and environments may have copies"
            )
        for copy in range(count):
            name = process.line if count == 1 else f"{process.line}.{copy + 1}"
            need = needs.get(process.line, Needs())
            found.append(replace(process, name=name, copy=copy, needs=need))
    return found


def told(processes: Sequence[Described], places: Mapping[str, Address]) -> dict[str, Described]:
    """Return the processes by name with the addresses of others, given where servers listen.

    Of a server that has copies each process is told one, in turn. A program of RELAAX is told by
    further flags, since these beat the YAML file; in another one's words addresses are replaced.
    """
    listening: dict[Address, list[str]] = {}
    for process in processes:
        if process.listens is not None and process.name in places:
            listening.setdefault(process.listens, []).append(process.name)
    return {process.name: _told(process, listening, places) for process in processes}


def _told(
    process: Described, listening: Mapping[Address, list[str]], places: Mapping[str, Address]
) -> Described:
    if process.command is None:
        return process
    new: dict[Address, Address] = {}
    for written, names in listening.items():
        own = process.name if process.name in names else names[process.copy % len(names)]
        is_here = written.host in HERE
        for host in {written.host, *(THIS_MACHINE if is_here else ())}:
            new[Address(host, written.port)] = places[own]
    if process.program:
        flags = tuple(_flags(process, new, places.get(process.name)))
        command = process.command.with_arguments(process.word, flags)
    else:
        command = process.command.with_addresses({str(old): str(new[old]) for old in new})
    return replace(process, text=command.text, command=command)


def _flags(
    process: Described, new: Mapping[Address, Address], place: Address | None
) -> Iterator[str]:
    """Yield the flags of a program of RELAAX for those addresses that are not as it knows them."""
    known = process.options
    if known is not None:
        now = with_addresses(known, new)
        for name, option in type(known).model_fields.items():
            value = getattr(now, name)
            is_told = str(option.alias) in _OF_GROUPS and getattr(known, "agents", None) is not None
            if value != getattr(known, name) and not is_told:
                several = value if isinstance(value, tuple) else (value,)
                yield from (str(option.alias), *map(str, several))
    if moved := [f"{old}={new[old]}" for old in _addresses_of_groups(known) if old in new]:
        yield from (MOVED, *moved)
    if place is not None and process.listens not in (None, place):
        yield from ("--bind", str(place))
    if process.copy and process.for_operators:
        yield from (FOR_OPERATORS, str(process.for_operators[0]))


def _addresses_of_groups(options: Any) -> list[Address]:
    """Return the addresses in the file of an actor's groups, and in the files that this names."""
    agents: Path | None = getattr(options, "agents", None)
    if agents is None:
        return []
    found: dict[Address, None] = {}
    for group in read_agents(agents).groups:
        words = [*group.arguments, "--env", str(options.env)]
        found |= dict.fromkeys(known_addresses(load(ACTOR, words).options))
    return list(found)
