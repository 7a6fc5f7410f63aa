"""Memory that a client lends to replay servers on its host, so that samples need not be sent.

It is a memfd (memfd_create(2)): a file without a name, which takes no room in /dev/shm, and which
is gone with the last process that has it, however that process ends.
"""

import fcntl
import mmap
import os
import secrets

import numpy as np
import numpy.typing as npt

from relaax.replay import replay_pb2

Bytes = npt.NDArray[np.uint8]

#: How the file is called in /proc; no other file is opened for a client.
FILE_NAME = "relaax-replay"

#: A segment begins with a token that its client drew, and that a server compares with the token of
#: the request. Arrays begin behind it.
TOKEN_BYTES = 16

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
