"""Memory that a client lends to replay servers on its host, and arrays one behind another in it.

It is a memfd (memfd_create(2)): a file without a name, which takes no room in /dev/shm, and which
is gone with the last process that has it, however that process ends.
"""

import fcntl
import mmap
import os
import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay import replay_pb2
from relaax.replay.array_bytes import Place, address_of, extent_of, size_of

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: How the file is called in /proc; no other file is opened for a client.
FILE_NAME = "relaax-replay"

#: A segment begins with a token that its client drew, and that a server compares with the token of
#: the request. Arrays begin behind it.
TOKEN_BYTES = 16

#: Arrays begin at multiples of it: TensorFlow need not copy them.
ALIGNMENT = 64

#: Whether this system has memfd, and shows a process's files in /proc.
IS_POSSIBLE = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")


class Segment:
    """Memory of ``size`` bytes that this process reads, and that a server writes.

    OSError if the system does not give it. All of it is taken at once, and it cannot shrink: a
    server that writes there finds it.
    """

    def __init__(self, size: int) -> None:
        token = secrets.token_bytes(TOKEN_BYTES)
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        self._descriptor = os.memfd_create(FILE_NAME, flags)
        try:
            os.posix_fallocate(self._descriptor, 0, size)
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            os.pwrite(self._descriptor, token, 0)
            mapping = mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ)
        except BaseException:
            self.close()
            raise
        self.memory: Bytes = np.frombuffer(mapping, np.uint8)
        self.name = replay_pb2.Segment(
            process=os.getpid(), descriptor=self._descriptor, token=token
        )

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.memory)

    def close(self) -> None:
        """Give the file up; the memory is there as long as an array lies in it."""
        os.close(self._descriptor)


class NoRoom(Exception):
    """The memory is too small."""


class Room:
    """Hands out arrays in ``memory``, behind its token."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory
        self._end = TOKEN_BYTES

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> Array:
        """Return an array of any content, which lies elsewhere if there is no room; see Empty."""
        try:
            return self._next(shape, dtype)
        except NoRoom:
            return np.empty(shape, dtype)

    def place_of(self, array: Array) -> Place:
        """Return where ``array`` lies in the memory; it is copied there if it lies elsewhere.

        NoRoom where it does not fit.
        """
        offset = address_of(array) - address_of(self._memory)
        if 0 <= offset <= len(self._memory) - extent_of(array):
            return Place(offset, () if array.flags.c_contiguous else array.strides)
        copy = self._next(array.shape, array.dtype.newbyteorder("<"))
        copy[...] = array
        return Place(address_of(copy) - address_of(self._memory))

    def _next(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        begin = _aligned(self._end)
        end = begin + size_of([(dtype, shape)])
        if end > len(self._memory):
            raise NoRoom
        self._end = end
        return self._memory[begin:end].view(dtype).reshape(shape)


def room_for(size: int, arrays: int) -> int:
    """Return how many bytes of memory have room for so many arrays of ``size`` bytes together."""
    return TOKEN_BYTES + arrays * ALIGNMENT + size


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
