"""The state of a run in a file: its launcher writes it, commands in other shells read it."""

import os
import socket
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.errors import ConfigurationError

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

    #: What it has said last about how far it is.
    progress: str = ""
    #: The last line that it has printed besides.
    words: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with another status than 0."""
        return self.status not in (None, 0)

    def state(self) -> str:
        """Return in words whether it runs, or how it has ended."""
        if self.status is None:
            return "runs" if self.running() is not None else "is gone"
        return how_it_ended(self.status)


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
    """Writes the record of a run that this process is the launcher of. For one thread."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._written_at = -_INTERVAL_S
        #: The processes that have ended, in their order.
        self._ended: list[str] = []
        self._record = RunRecord(launcher=Process.of(os.getpid()))
        self._write()

    def note_start(self, name: str, pid: int) -> None:
        """Take note of a process that was started, for the first time or again."""
        self._record.workers[name] = Worker(**Process.of(pid).model_dump())
        self._write()

    def note_end(self, name: str, status: int) -> None:
        """Take note of the exit status of a process, -N after signal N."""
        worker = self._record.workers.setdefault(name, Worker())
        self._ended.append(name)
        worker.status, worker.since = status, datetime.now().replace(microsecond=0)
        self._write()

    def note_progress(self, name: str, text: str) -> None:
        """Take note of how far a process is."""
        if name in self._record.workers:
            self._record.workers[name].progress = text
        if self._clock() - self._written_at >= _INTERVAL_S:
            self._write()

    def note_words(self, name: str, line: str) -> None:
        """Take note of a line that a process has printed; the last one may be why it fails."""
        if name in self._record.workers and line:
            self._record.workers[name].words = line

    def failure(self) -> str | None:
        """Return which process has failed first, and its last words; None if none has."""
        for name in self._ended:
            worker = self._record.workers[name]
            if worker.has_failed:
                return f"{name} {worker.state()}: {worker.words}"
        return None

    def note_status(self, status: int) -> None:
        """Take note of the exit status of this process, which is about to end."""
        launcher = self._record.launcher
        launcher.status, launcher.since = status, datetime.now().replace(microsecond=0)
        self._write()

    def _write(self) -> None:
        """Replace the file, so that a reader finds a whole one."""
        self._written_at = self._clock()
        new = self._path.with_suffix(".new")
        try:
            new.write_text(self._record.model_dump_json(indent=1), encoding="utf-8")
            new.replace(self._path)
        except OSError as error:
            raise ConfigurationError(f"cannot write {self._path}: {error.strerror}") from error


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of the same number of columns as text, in aligned columns."""
    kept = list(rows)
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    lines = (
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        for row in kept
    )
    return "\n".join(line.rstrip() for line in lines)
