"""Mistakes and doubts in the configuration of a training, before anything is started."""

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relaax.algorithm_base import ConfigBase
from relaax.configuration import AlgorithmSection
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.announced_spaces import DOUBTFUL
from relaax.configuration.commands import (
    INFERENCE_SERVER,
    LEARNER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
    RLX_SERVER,
)
from relaax.configuration.option_base import FILES
from relaax.errors import ConfigurationError
from relaax.launcher.described import HERE, TO_RLX_SERVER, Described
from relaax.launcher.engines.hosted_program import environment
from relaax.launcher.process_log import BEGINS
from relaax.launcher.shell_words import python_program
from relaax.replay.process.replay_memory import memory_of_replay
from relaax.telemetry.logs import OLDER_FILES

#: In a line that runs a learner, in any way.
_RUNS_LEARNER = re.compile(r"relaax-learner|relaax\.server\.learner")

#: In lines that run a program of RELAAX.
_OF_RELAAX = re.compile(r"relaax[-.]")

_PARAMETER_SERVER, _RLX = PARAMETER_SERVER.name, RLX_SERVER.name
_LEARNER, _REPLAY = LEARNER.name, REPLAY_SERVER.name

#: By option: the program that has to listen there.
_LISTENERS = {
    "--parameter-server": _PARAMETER_SERVER,
    "--learner": _LEARNER,
    "--replay-servers": _REPLAY,
    "--inference-servers": INFERENCE_SERVER.name,
    TO_RLX_SERVER: _RLX,
}

_NO_LEARNER = (
    "no line runs relaax-learner, which this algorithm needs: unless one runs elsewhere, "
    "environments would act, and nothing would be learnt"
)


#: A shell script, or a PATH of its own: the first word may be none of this machine's programs.
_ANY_SHELL = re.compile(r"[;(){}]|\bPATH=")

#: A shell makes other names of such ones.
_EXPANDED = re.compile(r"[~*?\[]")

#: A shell finds a program at once.
_LOOK_UP_S = 10.0

#: Options of servers whose values are files that are read. Others are written, or may be missing.
_READ = ("--config", "--aws-keys", *FILES)


@dataclass(frozen=True)
class Findings:
    """Sentences: mistakes, which keep the training from starting or from learning; and doubts.

    ``notes`` say how much memory the training will take.
    """

    mistakes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def require_start_folder(procfile: Path, processes: Iterable[Described]) -> None:
    """Raise ConfigurationError for a file that is missing here, and is there for the Procfile.

    That is below the folder of the Procfile, or below the one around it: from there its lines are
    to be started. A file that is missing there, too, is left to the program that needs it.
    """
    here = Path.cwd()
    places = [place for place in procfile.resolve().parents[:2] if place != here]
    for process in processes:
        for name in _files(process):
            place = next((each for each in places if os.path.isfile(each / name)), None)
            if place is not None and not os.path.exists(name):
                raise ConfigurationError(
                    f"{procfile} names {name}, which is not below this folder, but below {place}: "
                    f"start it there, after 'cd {shlex.quote(str(place))}'. For an environment of "
                    "your own, 'relaax-new NAME' makes a folder with a Procfile"
                )


def check(processes: Sequence[Described], *, on_one_machine: bool = True) -> Findings:
    """Return the findings in the processes of a Procfile.

    Where each has a machine of its own, or all are one process, they are not ``on_one_machine``,
    and share no ports.
    """
    found, lines, is_read_whole = Findings(), [], True
    mistaken: dict[str, list[str]] = {}
    for process in processes:
        if process.mistake and process.is_as_written:
            mistaken.setdefault(process.mistake, []).append(process.name)
        elif process.program and process.is_as_written:
            lines.append(process)
        elif _OF_RELAAX.search(process.text) or not process.plays:
            is_read_whole = False
    found.mistakes.extend(f"{', '.join(names)}: {text}" for text, names in mistaken.items())
    if on_one_machine:
        found.mistakes.extend(_shared_ports(lines))
        found.mistakes.extend(_shared_checkpoints(lines))
    sections = {str(line.algorithm): line.algorithm for line in lines if line.algorithm}
    has_policies = any(getattr(line.options, "agents", None) is not None for line in lines)
    if len(sections) > 1 and not has_policies:
        files = ", ".join(sorted({str(section.source) for section in sections.values()}))
        found.doubts.append(f"the processes read different algorithm sections: {files}")
    learners = sum(_RUNS_LEARNER.search(process.text) is not None for process in processes)
    unheard = found.mistakes if is_read_whole and on_one_machine else found.doubts
    for section in sections.values():
        try:
            algorithm = load_algorithm(section.directory)
            config = make_config(algorithm, section)
            found.doubts.extend(_doubts_of(config, section))
            if on_one_machine and algorithm.has_learner(config):
                found.notes.extend(_memory(algorithm, config, section, lines))
        except ConfigurationError as error:
            found.mistakes.append(str(error))
            continue
        players = [process for process in processes if not process.program]
        unheard.extend(_unheard(algorithm.has_learner(config), lines, players))
        if not algorithm.has_learner(config):
            found.mistakes.extend(_needless(algorithm, config, lines))
        elif _trains(lines) and not learners:
            is_known = is_read_whole and not _learn_elsewhere(lines)
            (found.mistakes if is_known else found.doubts).append(_NO_LEARNER)
        elif _trains(lines):
            found.doubts.extend(_other_count(config, section, learners))
    return found


def missing_programs(processes: Iterable[Described]) -> Iterator[str]:
    """Yield the commands whose program, or whose file of Python, is missing on this machine."""
    for process in processes:
        command = process.command
        if command is None or not process.is_as_written or _ANY_SHELL.search(command.text):
            continue
        words = command.started()
        if not words or words[0].startswith("-"):  # options of env
            continue
        script = python_program(words)
        if _EXPANDED.search(f"{words[0]} {script.file if script else ''}"):
            continue
        # A shell knows words of its own besides.
        found = subprocess.run(  # noqa: S603  # no more than looked up
            ["/bin/sh", "-c", 'command -v -- "$0"', words[0]],
            env=environment({}), stdout=subprocess.DEVNULL, check=False, timeout=_LOOK_UP_S,
        )  # fmt: skip
        if found.returncode:
            yield f"{process.name}: there is no program {words[0]}"
        elif script is not None and script.file is not None and not script.file.exists():
            yield f"{process.name}: there is no file {script.file}"


def idle_copies(processes: Sequence[Described]) -> Iterator[str]:
    """Yield the RLX servers with copies whose address no other line has: none is told of them."""
    players = [process.text for process in processes if not process.program]
    for server in processes:
        if server.program != _RLX or server.copy != 1 or server.listens is None:
            continue
        if players and not any(f":{server.listens.port}" in text for text in players):
            yield (
                f"no other line has the address of {server.line}, port {server.listens.port}: "
                "copies have addresses of their own, which environments are told in its place, so "
                "that they may be idle"
            )


def doubts_in(log: Path) -> list[str]:
    """Return the doubts of servers about environments since the last start in ``log``.

    Earlier doubts are of other settings. A file that has grown was renamed meanwhile.
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
    algorithm: Algorithm, config: ConfigBase, section: AlgorithmSection, lines: Sequence[Described]
) -> Iterator[str]:
    """Yield the memory of replays on this machine; ConfigurationError where it is too much."""
    spec = algorithm.replay_spec(config)
    for line in lines:
        options = line.options
        if line.algorithm != section:
            continue
        if line.program == _REPLAY:
            is_saved = options.checkpoint_dir is not None or options.checkpoint_aws_s3 is not None
            yield memory_of_replay(spec.share(len(options.replay_servers or [None])), is_saved)
        elif line.program == _LEARNER and options.replay_servers is None:
            yield memory_of_replay(spec, options.save_replay is True)


def _doubts_of(config: ConfigBase, section: AlgorithmSection) -> Iterator[str]:
    if isinstance(config, ConfigBase):
        yield from (f"{section.source}: {doubt}" for doubt in config.doubts())


def _other_count(config: ConfigBase, section: AlgorithmSection, learners: int) -> Iterator[str]:
    """Yield a sentence where other numbers of learners are configured and started."""
    count = config.learner_count() if isinstance(config, ConfigBase) else learners
    if learners != count:
        yield (
            f"{section.source}: algorithm: learners: count is {count}, and the number of lines "
            f"that run relaax-learner is {learners}"
        )


def _needless(
    algorithm: Algorithm, config: ConfigBase, lines: Sequence[Described]
) -> Iterator[str]:
    """Yield the programs that belong to a learner, which this algorithm does not have."""
    for line in lines:
        try:
            algorithm.require_learner(config, line.program)
        except ConfigurationError as error:
            yield f"{line.name}: {error}"


def _shared_ports(lines: Sequence[Described]) -> Iterator[str]:
    """Yield which two processes would listen at one port of this machine."""
    taken: dict[int, str] = {}
    for line in lines:
        address = line.listens
        if address is None or address.host not in HERE or address.port == 0:
            continue
        other = taken.setdefault(address.port, line.name)
        if other != line.name:
            yield (
                f"{other} and {line.name} both listen at port {address.port}: give one of them "
                "another --bind"
            )


def _shared_checkpoints(lines: Sequence[Described]) -> Iterator[str]:
    """Yield which learner would save where the parameter server does."""
    places = {
        line.options.checkpoint_dir: line.name
        for line in lines
        if line.program == _PARAMETER_SERVER and line.options.checkpoint_dir
    }
    for line in lines:
        place = line.options.checkpoint_dir if line.program == _LEARNER else None
        if place in places:
            yield (
                f"{places[place]} and {line.name} both have --checkpoint-dir {place}: give the "
                "learner a folder of its own"
            )


def _unheard(
    has_learner: bool, lines: Sequence[Described], players: Sequence[Described]
) -> Iterator[str]:
    """Yield the processes that connect to ports of this machine where no process listens."""
    listening: dict[str, set[int]] = {}
    for line in lines:
        if line.listens is not None:
            listening.setdefault(line.program, set()).add(line.listens.port)
    here = (*HERE, socket.gethostname())
    for line in (*lines, *players):
        for option, program in _told(line, has_learner):
            ports = listening.get(program, set())
            for address in line.addresses().get(option, ()):
                if ports and address.host in here and address.port not in ports:
                    yield (
                        f"{line.name} connects to {address} ({option}), and the {program} of this "
                        f"Procfile listens at {_named(ports)}"
                    )


def _trains(lines: Sequence[Described]) -> bool:
    """Return whether a parameter server and an RLX server without ``--exploit`` are there."""
    rlx = [line for line in lines if line.program == _RLX]
    has_parameter_server = any(line.program == _PARAMETER_SERVER for line in lines)
    return has_parameter_server and any(not each.options.exploit for each in rlx)


def _learn_elsewhere(lines: Sequence[Described]) -> bool:
    """Return whether steps are delivered to another machine, which may have the learner."""
    options = ("--learner", "--replay-servers")
    places = [
        place for line in lines for option in options for place in line.addresses().get(option, ())
    ]
    return any(place.host not in HERE for place in places)


def _told(line: Described, has_learner: bool) -> Iterator[tuple[str, str]]:
    """Yield the options of addresses that a process connects to, with the program that is there."""
    for option, program in _LISTENERS.items():
        delivers = has_learner and "--replay-servers" not in line.addresses()
        if option != "--learner" or delivers:
            yield option, program


def _named(ports: set[int]) -> str:
    word = "port" if len(ports) == 1 else "ports"
    return f"{word} {', '.join(map(str, sorted(ports)))}"


def _files(process: Described) -> Iterator[str]:
    """Yield the relative paths that a command reads, and without which it cannot start."""
    command = process.command
    if command is None or command.goes_elsewhere:
        return
    words = command.started()
    script = python_program(words)
    named = [value for option in _READ for value in command.values(option)]
    if words and "/" in words[0]:  # a name without a folder is looked up elsewhere
        named.insert(0, words[0])
    if script is not None and script.file is not None:
        named.insert(0, str(script.file))
    yield from (name for name in named if not os.path.isabs(name))
