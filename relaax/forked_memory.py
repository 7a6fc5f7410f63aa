"""Memory that a process shares with those that are forked from it."""

import contextlib
import fcntl
import mmap
import os
import threading
import weakref
from collections.abc import Iterator


class ForkedMemory:
    """``bytes`` of zeros at first, of which ``name`` is shown in the list of open files.

    Many threads and processes may use it at once, each of them ``alone``. A process that is killed
    meanwhile keeps no other out.
    """

    def __init__(self, name: str, size: int) -> None:
        self._file = os.memfd_create(name)  # in memory; its lock ends with its process
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, size)
        self.bytes = mmap.mmap(self._file, 0)
        #: Of threads: the file's lock is one of processes.
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out other threads and processes meanwhile."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
