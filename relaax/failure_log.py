"""Logs what an algorithm's code raises: the traceback once, however often it happens."""

import hashlib
import logging
import traceback

from relaax.forked_memory import ForkedMemory

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
        self._memory = ForkedMemory("failures", _MOST_FAILURES * _DIGEST_BYTES)
        self._shown = self._memory.bytes

    def add(self, what: str, error: Exception) -> None:
        """Log ``what`` failed with the traceback; one line, where that has been logged before.

        Failures are the same if they are of one type and come from one line of code, which was
        reached in the same way: two mistakes that end in one line of a library are two failures.
        """
        digest = _digest(error)
        with self._memory.alone():  # until the failure is in the log
            place = self._place_of(digest)
            if self._shown[place] == digest:
                self._log.error("%s failed again: %s", what, in_words(error))
                return
            self._log.error("%s failed", what, exc_info=error)
            # After it: a process that is killed between the two leaves its traceback to the next.
            if self._shown[place] == _FREE:
                self._shown[place] = digest

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
