"""The state of a run in a file: its launcher writes it, commands in other shells read it."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.errors import ConfigurationError
from relaax.launcher.process_log import printed
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: The name of the file in a trial's folder.
NAME = "run.json"

#: Seconds between two writings of progress; starts and ends are written at once.
_INTERVAL_S = 1.0

#: A process that began so many seconds earlier or later has been given the number of another one.
_SAME_S = 1.0


class Process(BaseModel):
    """A process of this machine, which no later one with the same number is taken for."""

    model_config = ConfigDict(extra="forbid")

    pid: int = 0
    #: Seconds since 1970, as the system says it; 0 where it had ended before it was asked.
    created: float = 0.0
    since: datetime = Field(default_factory=lambda: datetime.now().replace(microsecond=0))
    #: The exit status, -N after signal N; None while it runs, or where none has seen its end.
    status: int | None = None

    @classmethod
    def of(cls, pid: int) -> "Process":
        """Return the process that has this number now."""
        try:
            return cls(pid=pid, created=psutil.Process(pid).create_time())
        except psutil.Error:
            return cls(pid=pid)

    def running(self) -> psutil.Process | None:
        """Return the process while it runs; None afterwards."""
        try:
            found = psutil.Process(self.pid) if self.created else None
            if found is None or abs(found.create_time() - self.created) > _SAME_S:
                return None
            return None if found.status() == psutil.STATUS_ZOMBIE else found
        except psutil.Error:
            return None


class Worker(Process):
    """A process of a trial."""

    #: The address of its machine; empty for the launcher's.
    host: str = ""
    #: What it has said last about how far it is.
    progress: str = ""
    #: The last line that it has printed besides.
    last_line: str = ""
    #: The last line of an error, or of a traceback.
    error: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with another status than 0."""
        return self.status not in (None, 0)

    @property
    def said(self) -> str:
        """How far it is; where it has failed, its error, or the last line without one."""
        return (self.error or self.last_line) if self.has_failed else self.progress


class RunRecord(BaseModel):
    """A run of a trial, and its processes by name."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(default_factory=socket.gethostname)
    launcher: Process
    workers: dict[str, Worker] = Field(default_factory=dict)

    @property
    def is_here(self) -> bool:
        """Whether it was started on this machine, whose processes can be looked at."""
        return self.host == socket.gethostname()

    def state_of(self, name: str) -> str:
        """Return in words whether a process runs, or how it has ended.

        One on another machine runs as long as its launcher, which takes note of its end.
        """
        worker = self.workers[name]
        if worker.status is not None:
            return how_it_ended(worker.status)
        seen: Process = self.launcher if worker.host else worker
        return "runs" if seen.running() is not None else "is gone"


def how_it_ended(status: int) -> str:
    """Return in words how a process has ended: by a status, or by signal N where it is -N."""
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def read_record(path: Path) -> RunRecord:
    """Return the record in a file; ConfigurationError if it cannot be read."""
    try:
        return RunRecord.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is of another version"
        raise ConfigurationError(f"cannot read {path}: {reason}") from error


class RunRecorder:
    """Writes the record of a run that this process is the launcher of. For one thread.

    ConfigurationError if it cannot be written at the start. Later that is logged: the run goes on.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._written_at = -_INTERVAL_S
        self._complaint = RepeatedWarning(_log)
        #: Processes that print a traceback now.
        self._in_traceback: set[str] = set()
        #: The process whose end was the end of the run.
        self._decided_by: str | None = None
        self._record = RunRecord(launcher=Process.of(os.getpid()))
        try:
            self._replace()
        except OSError as error:
            raise ConfigurationError(self._why_not(error)) from error

    def note_start(self, name: str, pid: int, host: str = "") -> None:
        """Take note of a process that was started, for the first time or again.

        ``host`` is the address of its machine; empty for this one.
        """
        process = Process(pid=pid) if host else Process.of(pid)
        self._record.workers[name] = Worker(**process.model_dump(), host=host)
        self._write()

    def note_end(self, name: str, status: int) -> None:
        """Take note of the exit status of a process, -N after signal N."""
        worker = self._record.workers.setdefault(name, Worker())
        worker.status, worker.since = status, datetime.now().replace(microsecond=0)
        self._write()

    def note_progress(self, name: str, text: str) -> None:
        """Take note of how far a process is."""
        if name in self._record.workers:
            self._record.workers[name].progress = text
        if self._clock() - self._written_at >= _INTERVAL_S:
            self._write()

    def note_line(self, name: str, line: str) -> None:
        """Take note of a line that a process has printed: it may be why it fails."""
        worker, message = self._record.workers.get(name), printed(line).message.strip()
        if worker is None or not message:
            return
        worker.last_line = message
        if printed(line).level in ("ERROR", "CRITICAL") or self._ends_traceback(name, line):
            worker.error = message

    def _ends_traceback(self, name: str, line: str) -> bool:
        """Return whether a line is the error below a traceback."""
        if line.startswith("Traceback (most recent call last)"):
            self._in_traceback.add(name)
        elif name in self._in_traceback and not line.startswith(" "):
            self._in_traceback.remove(name)
            return True
        return False

    def note_decided_by(self, name: str) -> None:
        """Take note of the process whose end is the end of the run."""
        self._decided_by = name

    def failure(self) -> str | None:
        """Return which process has ended the run by its failure, and its error; None if none."""
        worker = self._record.workers.get(self._decided_by or "")
        if worker is None or not worker.has_failed:
            return None
        ending = self._record.state_of(str(self._decided_by))
        return f"{self._decided_by} {ending}: {worker.said}"

    def note_status(self, status: int) -> None:
        """Take note of the exit status of this process, which is about to end."""
        launcher = self._record.launcher
        launcher.status, launcher.since = status, datetime.now().replace(microsecond=0)
        self._write()

    def _write(self) -> None:
        try:
            self._replace()
            self._complaint.forget()
        except OSError as error:
            self._complaint.say(self._why_not(error))

    def _replace(self) -> None:
        """Replace the file, so that a reader finds a whole one."""
        self._written_at = self._clock()
        new = self._path.with_suffix(".new")
        new.write_text(self._record.model_dump_json(indent=1), encoding="utf-8")
        new.replace(self._path)

    def _why_not(self, error: OSError) -> str:
        return f"cannot write {self._path}: {error.strerror}"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of the same number of columns as text, in aligned columns."""
    kept = list(rows)
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    lines = (
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        for row in kept
    )
    return "\n".join(line.rstrip() for line in lines)
