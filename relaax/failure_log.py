"""Logs what an algorithm's code raises: the traceback once, however often it happens."""

import fcntl
import hashlib
import logging
import mmap
import os
import threading
import traceback
import weakref

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
        if self._is_new(error):
            self._log.error("%s failed", what, exc_info=error)
        else:
            self._log.error("%s failed again: %s", what, in_words(error))

    def _is_new(self, error: Exception) -> bool:
        digest = _digest(error)
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                return self._note(digest)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _note(self, digest: bytes) -> bool:
        """Return whether there was no such failure before, and keep that there is."""
        for begin in range(0, len(self._shown), _DIGEST_BYTES):
            place = slice(begin, begin + _DIGEST_BYTES)
            if self._shown[place] == digest:
                return False
            if self._shown[place] == _FREE:
                self._shown[place] = digest
                return True
        return True


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
