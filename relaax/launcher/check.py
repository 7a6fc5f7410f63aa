"""What is wrong, or doubtful, in the configuration of a training, before anything is started."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaax.acting.announced_spaces import DOUBTFUL
from relaax.address import Address
from relaax.algorithm_base import ConfigBase
from relaax.configuration import AlgorithmSection, Configuration
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.errors import ConfigurationError
from relaax.launcher.engines.plan import configured
from relaax.launcher.ports import servers_of
from relaax.launcher.process_log import BEGINS
from relaax.replay.process.replay_memory import memory_of_replay
from relaax.telemetry.log_file import OLDER_FILES

#: Such a line chooses its folder, or its arguments, when a shell runs it.
_KNOWN_LATER = re.compile(r"\bcd\b|[$`]")

#: What a line says that runs a learner, however it does.
_RUNS_LEARNER = re.compile(r"relaax-learner|relaax\.server\.learner")

#: What a line says that runs a program of RELAAX, and what one says that plays environments.
_OF_RELAAX, _PLAYS = re.compile(r"relaax[-.]"), re.compile(r"(^|\s)--rlx-server\b")

#: Hosts at which a process of this machine listens.
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104

_PARAMETER_SERVER, _RLX = "relaax-parameter-server", "relaax-rlx-server"
_LEARNER, _REPLAY = "relaax-learner", "relaax-replay-server"

#: By option: the program that has to listen there.
_LISTENERS = {
    "--parameter-server": _PARAMETER_SERVER,
    "--learner": _LEARNER,
    "--replay-servers": _REPLAY,
}

_NO_LEARNER = (
    "no line runs relaax-learner, which this algorithm needs: unless one runs elsewhere, "
    "environments would act, and nothing would be learnt"
)


@dataclass(frozen=True)
class Findings:
    """Sentences: what keeps the training from starting, or from learning; and what may be meant.

    ``notes`` say what the training will take.
    """

    mistakes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Line:
    """A line of the Procfile that runs a program of RELAAX."""

    name: str
    program: str
    configuration: Configuration[Any]

    @property
    def listens(self) -> Address | None:
        """Where it listens: a shard at its place among all."""
        options = self.configuration.options
        place: Address | None = getattr(options, "place", getattr(options, "bind", None))
        return place

    def connects(self, option: str) -> list[Address]:
        """Return the addresses of an option, none where it is not given."""
        value = getattr(self.configuration.options, option.strip("-").replace("-", "_"), None)
        return [value] if isinstance(value, Address) else [*value] if value else []


def check(commands: Mapping[str, str], *, on_one_machine: bool = True) -> Findings:
    """Read what the processes of a Procfile would read, by name, and return what is to be said.

    Where each has a machine of its own, or all are one process, they are not ``on_one_machine``,
    and share no ports.
    """
    found, lines, is_read_whole = Findings(), [], True
    for name, command in commands.items():
        try:
            is_later = _KNOWN_LATER.search(command)
            read = None if is_later else configured(command, anywhere=False)
        except ConfigurationError as error:
            found.mistakes.append(f"{name}: {error}")
            continue
        if read is not None:
            lines.append(_Line(name, *read))
        elif _OF_RELAAX.search(command) or not _PLAYS.search(command):
            is_read_whole = False
    if on_one_machine:
        found.mistakes.extend(_shared_ports(lines))
        found.mistakes.extend(_shared_checkpoints(lines))
        unserved = _unserved(commands, lines)
        (found.mistakes if is_read_whole else found.doubts).extend(unserved)
    sections = {str(line.configuration.algorithm): line.configuration.algorithm for line in lines}
    if len(sections) > 1:
        files = ", ".join(sorted({str(section.source) for section in sections.values()}))
        found.doubts.append(f"the processes read different algorithm sections: {files}")
    runs_learner = any(map(_RUNS_LEARNER.search, commands.values()))
    unheard = found.mistakes if is_read_whole and on_one_machine else found.doubts
    for section in sections.values():
        try:
            algorithm = load_algorithm(section.directory)
            config = make_config(algorithm, section)
            if isinstance(config, ConfigBase):
                found.doubts.extend(f"{section.source}: {doubt}" for doubt in config.doubts())
            if on_one_machine and algorithm.has_learner:
                found.notes.extend(_memory(algorithm, config, section, lines))
        except ConfigurationError as error:
            found.mistakes.append(str(error))
            continue
        unheard.extend(_unheard(algorithm, lines))
        if algorithm.has_learner and not runs_learner and _trains(lines):
            is_known = is_read_whole and not _learn_elsewhere(lines)
            (found.mistakes if is_known else found.doubts).append(_NO_LEARNER)
    return found


def doubts_in(log: Path) -> list[str]:
    """Return what servers have said of environments since the last start of a training in ``log``.

    What was said before that is of other settings. A file that has grown was renamed meanwhile.
    """
    text = ""
    for path in (log, *(Path(f"{log}.{number}") for number in range(1, OLDER_FILES + 1))):
        try:
            text = path.read_text(encoding="utf-8", errors="replace") + text
        except OSError:
            break
        _, begin, since = text.rpartition(BEGINS)
        if begin:
            text = since
            break
    return list(dict.fromkeys(re.findall(rf"{DOUBTFUL}(.+)", text)))


def _memory(
    algorithm: Algorithm, config: ConfigBase, section: AlgorithmSection, lines: Sequence[_Line]
) -> Iterator[str]:
    """Yield what replays of this machine take; ConfigurationError for one that takes too much."""
    spec = algorithm.replay_spec(config)
    for line in lines:
        options = line.configuration.options
        if line.configuration.algorithm != section:
            continue
        if line.program == _REPLAY:
            is_saved = options.checkpoint_dir is not None or options.checkpoint_aws_s3 is not None
            yield memory_of_replay(spec.share(len(options.replay_servers or [None])), is_saved)
        elif line.program == _LEARNER and options.replay_servers is None:
            yield memory_of_replay(spec, options.save_replay is True)


def _shared_ports(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield which two processes would listen at one port of this machine."""
    taken: dict[int, str] = {}
    for line in lines:
        address = line.listens
        if address is None or address.host not in _HERE or address.port == 0:
            continue
        other = taken.setdefault(address.port, line.name)
        if other != line.name:
            yield (
                f"{other} and {line.name} both listen at port {address.port}: give one of them "
                "another --bind"
            )


def _shared_checkpoints(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield which learner would save where the parameter server does."""
    places = {
        line.configuration.options.checkpoint_dir: line.name
        for line in lines
        if line.program == _PARAMETER_SERVER and line.configuration.options.checkpoint_dir
    }
    for line in lines:
        place = line.configuration.options.checkpoint_dir if line.program == _LEARNER else None
        if place in places:
            yield (
                f"{places[place]} and {line.name} both have --checkpoint-dir {place}: give the "
                "learner a folder of its own"
            )


def _unserved(commands: Mapping[str, str], lines: Sequence[_Line]) -> Iterator[str]:
    """Yield which environment connects to a port where no RLX server of the Procfile listens."""
    ports = {line.listens.port for line in lines if line.program == _RLX and line.listens}
    for name, command in commands.items():
        for port in servers_of(command) if ports else ():
            if port not in ports:
                yield (
                    f"{name} connects to port {port} (--rlx-server), and the {_RLX} of this "
                    f"Procfile listens at {_named(ports)}"
                )


def _unheard(algorithm: Algorithm, lines: Sequence[_Line]) -> Iterator[str]:
    """Yield which process connects to an address of this machine where none listens."""
    listening: dict[str, set[int]] = {}
    for line in lines:
        if line.listens is not None:
            listening.setdefault(line.program, set()).add(line.listens.port)
    for line in lines:
        for option, program in _told(line, algorithm):
            ports = listening.get(program, set())
            for address in line.connects(option):
                if ports and address.host in _HERE and address.port not in ports:
                    yield (
                        f"{line.name} connects to {address} ({option}), and the {program} of this "
                        f"Procfile listens at {_named(ports)}"
                    )


def _trains(lines: Sequence[_Line]) -> bool:
    """Return whether a parameter server and an RLX server without ``--exploit`` are there."""
    rlx = [line for line in lines if line.program == _RLX]
    has_parameter_server = any(line.program == _PARAMETER_SERVER for line in lines)
    return has_parameter_server and any(not each.configuration.options.exploit for each in rlx)


def _learn_elsewhere(lines: Sequence[_Line]) -> bool:
    """Return whether steps are delivered to another machine, which may have the learner."""
    options = ("--learner", "--replay-servers")
    places = [place for line in lines for option in options for place in line.connects(option)]
    return any(place.host not in _HERE for place in places)


def _told(line: _Line, algorithm: Algorithm) -> Iterator[tuple[str, str]]:
    """Yield the options of addresses that a process connects to, with the program that is there."""
    for option, program in _LISTENERS.items():
        delivers = algorithm.has_learner and not line.connects("--replay-servers")
        if option != "--learner" or delivers:
            yield option, program


def _named(ports: set[int]) -> str:
    word = "port" if len(ports) == 1 else "ports"
    return f"{word} {', '.join(map(str, sorted(ports)))}"
