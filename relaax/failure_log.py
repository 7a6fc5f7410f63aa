"""Logs what an algorithm's code raises: the traceback once, however often it happens."""

import contextlib
import fcntl
import hashlib
import logging
import mmap
import os
import threading
import traceback
import weakref
from collections.abc import Iterator

#: Of a failure, in what processes share.
_DIGEST_BYTES = 16

#: So many failures are known again; tracebacks of any after them are logged each time.
_MOST_FAILURES = 1024

_FREE = bytes(_DIGEST_BYTES)


class FailureLog:
    """Keeps which failures ``log`` has shown, here and in processes that are forked from here.

    Many threads and processes may call it at once.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._file = os.memfd_create("failures")  # in memory; its lock ends with its process
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, _MOST_FAILURES * _DIGEST_BYTES)
        self._shown = mmap.mmap(self._file, 0)
        #: Of threads: the file's lock is one of processes.
        self._lock = threading.Lock()

    def add(self, what: str, error: Exception) -> None:
        """Log ``what`` failed with the traceback; one line, where that has been logged before.

        Failures are the same if they are of one type and come from one line of code, which was
        reached in the same way: two mistakes that end in one line of a library are two failures.
        """
        digest = _digest(error)
        with self._alone():
            place = self._place_of(digest)
            if self._shown[place] == digest:
                self._log.error("%s failed again: %s", what, in_words(error))
                return
            self._log.error("%s failed", what, exc_info=error)
            # After it: a process that is killed between the two leaves its traceback to the next.
            if self._shown[place] == _FREE:
                self._shown[place] = digest

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep out other threads and processes, until the failure is in the log."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _place_of(self, digest: bytes) -> slice:
        """Return where this failure is kept, or may be: nowhere, if all places are taken."""
        for begin in range(0, len(self._shown), _DIGEST_BYTES):
            place = slice(begin, begin + _DIGEST_BYTES)
            if self._shown[place] in (digest, _FREE):
                return place
        return slice(0)


def in_words(error: Exception) -> str:
    """Return an error's type and message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _digest(error: Exception) -> bytes:
    """Return what failures that are the same have in common."""
    # Without their order and number: an error that is raised again has more frames each time.
    frames = traceback.walk_tb(error.__traceback__)
    way = sorted({f"{frame.f_code.co_filename}:{line}" for frame, line in frames})
    kind = type(error)
    said = "\n".join([f"{kind.__module__}.{kind.__qualname__}", *way])
    return hashlib.blake2b(said.encode(errors="replace"), digest_size=_DIGEST_BYTES).digest()
