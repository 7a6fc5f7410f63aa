"""A log file that several processes write, line by line."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from relaax.processes.directory_lock import lock_within

#: A file of this size is renamed, and so many older ones are kept.
MAX_BYTES, OLDER_FILES = 10 * 1024 * 1024, 5

#: A process that was stopped while it held the lock keeps the others no longer than this.
LOCK_TIMEOUT_S = 1.0
_LOCK_POLL_S = 0.001

FORMAT = "%(asctime)s %(processName)s [%(process)d] %(levelname)s: %(message)s"


class EachLine(logging.Formatter):
    """Puts a format's prefix before every line of a message, tracebacks included."""

    def __init__(self, form: str = FORMAT) -> None:
        super().__init__(form)
        self._before = logging.Formatter(form.replace("%(message)s", ""))

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        first, *others = super().format(record).splitlines() or [""]
        if not others:
            return first
        plain = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        before = self._before.format(plain)
        return "\n".join([first, *(before + line for line in others)])


class SharedLogFile(RotatingFileHandler):
    """A file that any number of processes may append to, each with an object of its own.

    A record is written as a whole: its lines stay together, and a process that is killed in the
    middle of one leaves no half line that another process's record would continue. At ``max_bytes``
    the file is renamed to ``NAME.1``, and older ones to ``NAME.2`` and so on; all processes go on
    in the new one. The folder is made if it is missing. OSError if it cannot be used.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES, older: int = OLDER_FILES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(
            path, maxBytes=max_bytes, backupCount=older, encoding="utf-8", errors="replace"
        )
        self.setFormatter(EachLine())
        self._is_failing = False

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record."""
        with self.turn():
            try:
                self._open_again_if_renamed()
                self._end_half_line()
            except OSError:
                self.handleError(record)
                return
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Report once that the log cannot be written, and open it anew for the next record."""
        reason = sys.exc_info()[1]
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):  # its buffer cannot be written either
                stream.close()
        if not self._is_failing and sys.stderr is not None:
            self._is_failing = True
            print(f"cannot write the log {self.baseFilename}: {reason}", file=sys.stderr)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Keep other processes out, by a lock of the folder; without it if that takes too long.

        It is opened anew each time, since a process shares its parent's open files after a fork.
        """
        try:
            folder = os.open(os.path.dirname(self.baseFilename), os.O_RDONLY)
        except OSError:
            yield
            return
        try:
            lock_within(folder, LOCK_TIMEOUT_S, _LOCK_POLL_S)
            yield
        finally:
            os.close(folder)

    def _open_again_if_renamed(self) -> None:
        if self.stream is None:
            return
        ours, path = os.fstat(self.stream.fileno()), self.baseFilename
        with suppress(FileNotFoundError):
            if os.path.samestat(ours, os.stat(path)):
                return
        self.stream.close()
        self.stream = self._open()

    def _end_half_line(self) -> None:
        """End a killed process's unfinished last line."""
        if self.stream is None or not os.path.isfile(self.baseFilename):
            return
        with open(self.baseFilename, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                self.stream.write("\n")
