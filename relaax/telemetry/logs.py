"""The servers' log: on standard error, and in a file if one is named, which they may share."""

import logging
import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

os.environ.setdefault("SPT_NOENV", "1")  # a long title must not overwrite the environment
from setproctitle import setproctitle

from relaax.errors import ConfigurationError
from relaax.processes.directory_lock import lock_within
from relaax.telemetry.live_lines import asked_interval_s
from relaax.telemetry.throttled_log import RateLimit

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


_FORMAT = "%(asctime)s:%(process)d:%(levelname)s:%(message)s"

#: Loggers of libraries that write their traffic at DEBUG: also tokens, and new keys.
_TALKATIVE = ("boto3", "botocore", "s3transfer", "urllib3")

#: A pipe takes a piece of so many bytes as a whole, or not at all (PIPE_BUF of Linux).
_PIPE_BYTES = 4096


class WholeLines(logging.StreamHandler):  # type: ignore[type-arg]  # of whatever stream there is
    """Writes each line by a call of its own, in pieces that a pipe takes as a whole.

    Workers share the pipe of their server. A worker that is killed while it logs a traceback leaves
    no half line there.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write the lines of a record."""
        try:
            for line in self.format(record).splitlines() or [""]:
                for piece in _pieces(line):
                    self.stream.write(f"{piece}\n")
                    self.flush()
        except Exception:  # as every handler of the standard library does
            self.handleError(record)


def start_logging(level: str, log_file: Path | None = None, program: str = "relaax") -> None:
    """Log messages of ``level`` and above to standard error, each with its process id.

    They also go to ``log_file``, where each line has the name of the process: ``program``, or a
    worker's name. Under ``relaax-train``, which keeps a file of all processes, each line of a
    traceback is a line like others. The S3 client logs no requests, even at DEBUG, as keys are in
    some. ConfigurationError if the file cannot be used.
    """
    multiprocessing.current_process().name = program
    stream = WholeLines()
    is_launched = asked_interval_s() is not None
    stream.setFormatter(EachLine(_FORMAT) if is_launched else logging.Formatter(_FORMAT))
    handlers: list[logging.Handler] = [stream]
    if log_file is not None:
        handlers.append(_opened(log_file))
        sys.excepthook = _log_what_ends_the_process
    limit = RateLimit()
    for handler in handlers:
        handler.addFilter(limit)
    logging.basicConfig(level=level, handlers=handlers, force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))


def name_process(name: str) -> None:
    """Call this process, which was forked, by the name of its parent and its own.

    In the log, and where processes are listed.
    """
    process = multiprocessing.current_process()
    process.name = f"{process.name}: {name}"
    show_name()


def show_name() -> None:
    """Let ``ps`` and ``top`` show the name of this process in the place of its command line."""
    setproctitle(multiprocessing.current_process().name)


def write_to_file(message: str) -> None:
    """Write an error that is printed into the log file, too, if there is one."""
    record = logging.makeLogRecord(
        {"msg": message, "levelno": logging.ERROR, "levelname": "ERROR"}
        | {"processName": multiprocessing.current_process().name}
    )
    for handler in logging.getLogger().handlers:
        if isinstance(handler, SharedLogFile):
            handler.handle(record)


def _opened(path: Path) -> SharedLogFile:
    try:
        return SharedLogFile(path)
    except OSError as error:
        raise ConfigurationError(f"--log-file: cannot write {path}: {error.strerror}") from error


def _log_what_ends_the_process(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        text = logging.Formatter().formatException((kind, error, trace))
        write_to_file(f"the process ends\n{text}")
    sys.__excepthook__(kind, error, trace)


def _pieces(line: str) -> list[str]:
    """Return a line in pieces that have, with an end each, no more bytes than a pipe takes."""
    if len(line.encode(errors="replace")) < _PIPE_BYTES:
        return [line]
    most = _PIPE_BYTES // 4 - 1  # a character has four bytes at most
    return [line[begin : begin + most] for begin in range(0, len(line), most)]
