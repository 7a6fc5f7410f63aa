"""The file into which ``relaax-train`` writes what all processes say."""

import argparse
import logging
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from honcho.manager import SYSTEM_PRINTER_NAME

from relaax.errors import ConfigurationError
from relaax.live_lines import GROUPS
from relaax.server.common.configuration import PARAMETER_SERVER
from relaax.server.common.configuration.yaml_reader import read_yaml
from relaax.server.common.log_file import SharedLogFile
from relaax.server.common.saver.manifest import steps_of_manifests
from relaax.server.parameter_server.progress import PREFIX

#: The name of the file in a training's folder.
NAME = "log"

#: The first line of each start.
BEGINS = "relaax-train starts the processes"

#: Of the lines that say how far a process is there is one in so many seconds.
PROGRESS_INTERVAL_S = 60.0

#: A line of a server's log, as ``relaax.server.common.logs`` formats it.
_LOGGED = re.compile(
    r"\d{4}-\d\d-\d\d [\d:,]{12}:(?P<pid>\d+):"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<message>.*)"
)
#: What honcho says.
_STARTED = re.compile(r"(?P<process>\S+) started \(pid=(?P<pid>\d+)( at \S+)?\)$")
_ERROR = re.compile(r"[\w.-]+: error: ")
_PROGRESS = re.compile(
    "|".join(re.escape(start) for start in (PREFIX, *(f"{g}: " for g in GROUPS)))
)


class ProcessLog:
    """Writes each line with its time, the name of the process in the Procfile, and its level.

    What is printed, and not logged, has the level INFO. It is the only writer, and takes whole
    lines, so that no process can break another one's.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = SharedLogFile(path)
        self._clock = clock
        #: The number of each process, as far as honcho has said it. One that forks says others.
        self._pids: dict[str, int] = {}
        #: When its next line about progress is written.
        self._progress_due: dict[str, float] = {}

    def begin(self) -> None:
        """Write that the processes are started."""
        self.write(SYSTEM_PRINTER_NAME, datetime.now(), BEGINS)

    def write(self, process: str, when: datetime, line: str) -> None:
        """Write a line of a process."""
        if begun := _STARTED.match(line):
            self._pids[begun["process"]] = int(begun["pid"])
        if _PROGRESS.match(line) and not self._is_due(process):
            return
        found = _LOGGED.fullmatch(line)
        pid, level, message = self._pids.get(process, os.getpid()), _level_of(line), line
        if found is not None:
            pid, level, message = int(found["pid"]), found["level"], found["message"]
        self._file.handle(
            logging.makeLogRecord(
                {
                    "created": when.timestamp(),
                    "msecs": when.microsecond // 1000,
                    "processName": process,
                    "process": pid,
                    "levelname": level,
                    "levelno": getattr(logging, level),
                    "msg": message,
                }
            )
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _is_due(self, process: str) -> bool:
        now = self._clock()
        if now < self._progress_due.get(process, now):
            return False
        self._progress_due[process] = now + PROGRESS_INTERVAL_S
        return True


def resumed_step(commands: Iterable[str]) -> int:
    """Return the step that the training of ``commands`` goes on from; 0 where it begins.

    It is that of the newest checkpoint in the parameter server's ``--checkpoint-dir``, if it has
    one.
    """
    for folder in _folders(commands, "--checkpoint-dir"):
        with suppress(OSError):
            names = [path.name for path in folder.iterdir()]
            return max(steps_of_manifests(names), default=0)
    return 0


def log_beside_checkpoints(commands: Iterable[str]) -> Path | None:
    """Return the log's path in the folder of the training that ``commands`` run; None without one.

    It is the folder that holds the parameter server's ``--checkpoint-dir``, or its
    ``--metrics-dir``, by its flags or in its YAML file.
    """
    for folder in _folders(commands, "--checkpoint-dir", "--metrics-dir"):
        return folder.parent / NAME
    return None


def _folders(commands: Iterable[str], *keys: str) -> Iterator[Path]:
    """Yield the folders that parameter servers are given by ``keys``, the first key first."""
    for command in commands:
        if PARAMETER_SERVER.name not in command:
            continue
        flags = _flags(command)
        section = {} if flags.config is None else _section(Path(flags.config))
        for key in keys:
            given = getattr(flags, key.removeprefix("--").replace("-", "_"))
            folder = given or section.get(key)
            if isinstance(folder, str):
                yield Path(folder).expanduser()


def _flags(command: str) -> argparse.Namespace:
    """Return the flags that matter; the server itself refuses those that are wrong."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--config", "--checkpoint-dir", "--metrics-dir"):
        parser.add_argument(flag)
    try:
        return parser.parse_known_args(shlex.split(command))[0]
    except (ValueError, argparse.ArgumentError):
        return parser.parse_args([])


def _section(path: Path) -> Mapping[str, object]:
    try:
        section = read_yaml(path).get(PARAMETER_SERVER.name)
    except ConfigurationError:  # the server itself says what is wrong
        return {}
    return section if isinstance(section, dict) else {}


def _level_of(line: str) -> str:
    return "ERROR" if _ERROR.match(line) else "INFO"
