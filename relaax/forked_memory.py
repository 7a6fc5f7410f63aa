"""Memory that a process shares with those that are forked from it."""

import contextlib
import fcntl
import mmap
import os
import threading
import time
import weakref
from collections.abc import Iterator

#: How often, and after which pauses, memory is tried that another process has for itself.
_TRIES, _PAUSE_S = 100, 0.0001


class ForkedMemory:
    """``bytes`` of zeros at first, of which ``name`` is shown in the list of open files.

    Many threads and processes may use it at once, each of them ``alone``. A process that is killed
    meanwhile keeps no other out, and one that is stopped does so for some milliseconds: then the
    others go on beside it.
    """

    def __init__(self, name: str, size: int) -> None:
        self._file = os.memfd_create(name)  # in memory; its lock ends with its process
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, size)
        self.bytes = mmap.mmap(self._file, 0)
        #: Of threads: the file's lock is one of processes.
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def alone(self, begin: int = 0, size: int = 0, tries: int = _TRIES) -> Iterator[None]:
        """Keep out other threads meanwhile, and other processes of these bytes; 0 for all."""
        with self._lock:
            is_locked = self._locks(begin, size, tries)
            try:
                yield
            finally:
                if is_locked:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, size, begin)

    def _locks(self, begin: int, size: int, tries: int) -> bool:
        for _ in range(tries):
            with contextlib.suppress(BlockingIOError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, size, begin)
                return True
            time.sleep(_PAUSE_S)
        return False
