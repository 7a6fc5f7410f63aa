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

#: For how long it is not waited for again after it was in vain: who has it is stopped.
_IN_VAIN_S = 1.0


class ForkedMemory:
    """``bytes`` of zeros at first, of which ``name`` is shown in the list of open files.

    Many threads and processes may use it at once, each of them ``alone``. A process that is killed
    meanwhile keeps no other out, and one that is stopped does so for some milliseconds a second:
    then the others go on beside it.
    """

    def __init__(self, name: str, size: int) -> None:
        self._file = os.memfd_create(name)  # in memory; its lock ends with its process
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, size)
        self.bytes = mmap.mmap(self._file, 0)
        #: By the place where a wait was in vain: when the next one may be.
        self._waits_again_at: dict[int, float] = {}
        #: Of threads: the file's lock is one of processes.
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def alone(self, begin: int = 0, size: int = 0) -> Iterator[None]:
        """Keep out other threads meanwhile, and other processes of these bytes; 0 for all."""
        with self._lock:
            is_locked = self._locks(begin, size)
            try:
                yield
            finally:
                if is_locked:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, size, begin)

    def _locks(self, begin: int, size: int) -> bool:
        waits = time.monotonic() >= self._waits_again_at.get(begin, 0.0)
        for pause_s in [0.0, *[_PAUSE_S] * _TRIES] if waits else [0.0]:
            if pause_s:
                time.sleep(pause_s)
            with contextlib.suppress(BlockingIOError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, size, begin)
                self._waits_again_at.pop(begin, None)
                return True
        if waits:
            self._waits_again_at[begin] = time.monotonic() + _IN_VAIN_S
        return False
