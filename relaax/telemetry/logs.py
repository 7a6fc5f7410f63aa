"""The servers' log: on standard error, and in a file if one is named."""

import logging
import multiprocessing
import os
import sys
from pathlib import Path
from types import TracebackType

os.environ.setdefault("SPT_NOENV", "1")  # a long title must not overwrite the environment
from setproctitle import setproctitle

from relaax.errors import ConfigurationError
from relaax.telemetry.live_lines import asked_interval_s
from relaax.telemetry.log_file import EachLine, SharedLogFile
from relaax.telemetry.throttled_log import RateLimit

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
