"""The socket between one worker and the compute process.

Messages are JSON, one a packet; a packet of one byte wakes a worker.
"""

import json
import socket
from typing import Any

from relaax.common.errors import ComputeError

WAKE = b"\0"

_MAX_PACKET_BYTES = 256 * 1024


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection that keeps packets apart and tells when its peer is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Link:
    """One end; it owns its socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        """Return the descriptor, for ``select``."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send a message, with open files; ComputeError when the other end is gone."""
        data = json.dumps(message).encode()
        try:
            socket.send_fds(self._socket, [data], descriptors)
        except OSError as error:
            raise ComputeError(f"the compute process is gone: {error}") from error

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """Return the next message and the open files with it; ComputeError when nobody is there."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _MAX_PACKET_BYTES, 1)
        except OSError as error:
            raise ComputeError(f"the compute process is gone: {error}") from error
        if not data:
            raise ComputeError("the compute process is gone")
        return json.loads(data), descriptors

    def wake(self) -> None:
        """Wake the worker; OSError when it is gone."""
        self._socket.send(WAKE)

    def wait(self) -> None:
        """Wait to be woken; ComputeError when the compute process is gone."""
        try:
            woken = self._socket.recv(1)
        except OSError as error:
            raise ComputeError(f"the compute process is gone: {error}") from error
        if not woken:
            raise ComputeError("the compute process is gone")

    def close(self) -> None:
        """Close this end."""
        self._socket.close()
