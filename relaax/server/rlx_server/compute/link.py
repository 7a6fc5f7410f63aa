"""The socket between one worker and the compute process.

Messages are JSON, one a packet; a packet of one byte wakes a worker.
"""

import json
import os
import socket
from typing import Any

from relaax.errors import ComputeError

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
        try:
            socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
        except OSError as error:
            raise _gone(error) from error

    def send_if_possible(self, message: dict[str, Any]) -> bool:
        """Send a message unless that would take time; return whether it was sent."""
        try:
            self._socket.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)
        except OSError:  # nobody reads, or nobody is there, as the next to wait will be told
            return False
        return True

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """Return the next message and the open files with it; ComputeError when nobody is there."""
        try:
            data, descriptors, flags, _ = socket.recv_fds(self._socket, _MAX_PACKET_BYTES, 1)
        except OSError as error:
            raise _gone(error) from error
        if not data:
            raise _gone()
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            for descriptor in descriptors:
                os.close(descriptor)
            raise ComputeError("a message to or from the compute process did not arrive whole")
        return json.loads(data), descriptors

    def wake(self) -> None:
        """Wake the worker; OSError when it is gone."""
        self._socket.send(WAKE)

    def wait(self) -> None:
        """Wait to be woken; ComputeError when the compute process is gone."""
        try:
            woken = self._socket.recv(1)
        except OSError as error:
            raise _gone(error) from error
        if not woken:
            raise _gone()

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def _gone(error: OSError | None = None) -> ComputeError:
    return ComputeError("the compute process is gone" + (f": {error}" if error else ""))
