"""The file into which ``relaax-train`` writes the output of all processes."""

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from relaax.checkpoints.manifest import steps_of_manifests
from relaax.configuration import PARAMETER_SERVER
from relaax.errors import ConfigurationError
from relaax.launcher.described import Described
from relaax.launcher.runner import SYSTEM
from relaax.telemetry.logs import SharedLogFile

#: The name of the file in a training's folder.
NAME = "log"

#: The file beside it that counts starts, where no local checkpoint says how far the training is.
STARTS = "starts.json"

#: Between two starts of a training are the numbers of processes that are started again.
_STARTS_APART = 1_000_000

#: The first line of each start.
BEGINS = "relaax-train starts the processes"

#: Of the lines that say how far a process is there is one in so many seconds.
PROGRESS_INTERVAL_S = 60.0

#: A line of a server's log, as ``relaax.telemetry.logs`` formats it.
_LOGGED = re.compile(
    r"\d{4}-\d\d-\d\d [\d:,]{12}:(?P<pid>\d+):"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<message>.*)"
)
_ERROR = re.compile(r"[\w.-]+: error: ")


class PrintedLine(NamedTuple):
    """A line of a process: one that is printed, and not logged, has no number and is INFO."""

    pid: int | None
    level: str
    message: str


def printed(line: str) -> PrintedLine:
    """Return the parts of a line that a process has printed."""
    found = _LOGGED.fullmatch(line)
    if found is not None:
        return PrintedLine(int(found["pid"]), found["level"], found["message"])
    return PrintedLine(None, "ERROR" if _ERROR.match(line) else "INFO", line)


class ProcessLog:
    """Writes each line with its time, the name of the process in the Procfile, and its level.

    It is the only writer, and takes whole lines, so that no process can break another one's.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = SharedLogFile(path)
        self._clock = clock
        #: The number of each process by its name. One that forks says others.
        self.pids: dict[str, int] = {}
        #: When its next line about progress is written.
        self._progress_due: dict[str, float] = {}

    def begin(self) -> None:
        """Write that the processes are started."""
        self.write(SYSTEM, datetime.now(), BEGINS)

    def write(self, process: str, when: datetime, line: str, *, is_state: bool = False) -> None:
        """Write a line of a process, which may say how far it is."""
        if is_state and not self._is_due(process):
            return
        found = printed(line)
        pid = found.pid or self.pids.get(process, os.getpid())
        self._file.handle(
            logging.makeLogRecord(
                {
                    "created": when.timestamp(),
                    "msecs": when.microsecond // 1000,
                    "processName": process,
                    "process": pid,
                    "levelname": found.level,
                    "levelno": getattr(logging, found.level),
                    "msg": found.message,
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


def incarnation(processes: Iterable[Described], log: Path | None) -> int:
    """Return the number of this start of the training; 0 for its first one.

    It is the step of the newest checkpoint in the parameter server's ``--checkpoint-dir``. Where
    checkpoints are in S3, starts are counted in a file beside the ``log``, if there is one.
    """
    for options in _parameter_servers(processes):
        if options.checkpoint_dir is not None:
            return _newest_step(options.checkpoint_dir)
        if options.checkpoint_aws_s3 is not None and log is not None:
            place = str([*options.checkpoint_aws_s3])
            return _STARTS_APART * _count_start(log.parent / STARTS, place)
    return 0


def _newest_step(folder: Path) -> int:
    with suppress(OSError):
        return max(steps_of_manifests(path.name for path in folder.iterdir()), default=0)
    return 0


def _count_start(file: Path, place: str) -> int:
    """Return how many starts there were with checkpoints in ``place``, and count one more."""
    try:
        counts = dict(json.loads(file.read_text(encoding="utf-8")))
        before = int(counts.get(place, 0))
    except (OSError, ValueError, TypeError):  # it is not there yet, or was damaged
        counts, before = {}, 0
    written = file.with_suffix(".new")
    try:
        written.write_text(json.dumps({**counts, place: before + 1}), encoding="utf-8")
        written.replace(file)
    except OSError as error:
        raise ConfigurationError(f"cannot write {file}: {error.strerror}") from error
    return before


def log_beside_checkpoints(processes: Iterable[Described]) -> Path | None:
    """Return the log's path in the folder of the training that ``processes`` run, if it has one.

    It is the folder that holds the parameter server's ``--checkpoint-dir``, or its
    ``--metrics-dir``.
    """
    for options in _parameter_servers(processes):
        folder: Path | None = options.checkpoint_dir or options.metrics_dir
        if folder is not None:
            return folder.parent / NAME
    return None


def _parameter_servers(processes: Iterable[Described]) -> list[Any]:
    """Return the options of the parameter servers that can be read."""
    servers = (each for each in processes if each.program == PARAMETER_SERVER.name)
    return [server.options for server in servers if server.options is not None]
