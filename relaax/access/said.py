"""What a server has said of a file: once, whichever of its processes notices the change."""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

_DIGEST_BYTES = sha256().digest_size

#: So many files of certificates are remembered; a process has one.
_MOST_FILES = 8


class Said:
    """Remembers a content, for this process and those that are forked from it later."""

    def __init__(self) -> None:
        from relaax.forked_memory import ForkedMemory  # of Linux, and clients import this package

        self._memory = ForkedMemory("relaax-said", _DIGEST_BYTES)

    def is_new(self, content: bytes) -> bool:
        """Return whether another content was given last, or none; to one process alone."""
        digest = sha256(content).digest()
        with self._memory.alone():
            if self._memory.bytes[:] == digest:
                return False
            self._memory.bytes[:] = digest
            return True

    def begin_with(self, content: bytes) -> None:
        """Let ``content`` be no news, unless something was given before."""
        with self._memory.alone():
            if self._memory.bytes[:] == bytes(_DIGEST_BYTES):
                self._memory.bytes[:] = sha256(content).digest()


@lru_cache(_MOST_FILES)
def said_of(path: Path, what: str) -> Said:
    """Return what all ports of this process have said of a file, in one matter."""
    return Said()
