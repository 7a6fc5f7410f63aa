"""The RLX server's end of the compute process."""

import logging
import os
import socket
import time
from collections.abc import Callable

from relaax.server.rlx_server.children import Children
from relaax.server.rlx_server.compute.link import socket_pair
from relaax.server.rlx_server.compute.process import READY

_log = logging.getLogger(__name__)

#: How long after its start a compute process that failed is started again, at the earliest.
RESTART_S = 2.0


class ComputeSupervisor:
    """Starts the compute process, starts it again when it ends, introduces workers to it.

    ``run`` is what the process does, given its end of the introductions and of the doorbell.
    """

    def __init__(self, children: Children, run: Callable[[socket.socket, int], int]) -> None:
        self._children = children
        self._run = run
        self._pid: int | None = None
        self._due = 0.0
        self._introductions: socket.socket | None = None
        self._doorbell: int | None = None
        self.is_ready = False
        #: Whether the process has closed its end.
        self.is_lost = False

    @property
    def pid(self) -> int | None:
        """The process, or None while there is none."""
        return self._pid

    def fileno(self) -> int:
        """Return what is readable when the process is ready or gone; -1 while there is none."""
        return -1 if self._introductions is None else self._introductions.fileno()

    def start_if_due(self) -> bool:
        """Start the process if there is none; return whether it was."""
        is_there = self._pid is not None or self._introductions is not None
        if is_there or time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + RESTART_S
        ours, theirs = socket_pair()
        ours.setblocking(False)  # a compute process that hangs must not hold up the RLX server
        doorbell_read, doorbell_write = os.pipe()

        def compute() -> int:
            ours.close()
            os.close(doorbell_write)
            return self._run(theirs, doorbell_read)

        try:
            self._pid = self._children.fork("compute process", compute)
        except OSError as error:
            _log.error("could not start a compute process: %s", error)
            ours.close()
            os.close(doorbell_write)
            return False
        finally:
            theirs.close()
            os.close(doorbell_read)
        _log.info("compute process %d starts", self._pid)
        self._introductions, self._doorbell = ours, doorbell_write
        self.is_lost = False
        return True

    def listen(self) -> None:
        """Take the process's word that it is ready, or the end of the process."""
        if self._introductions is None:
            return
        try:
            said = self._introductions.recv(len(READY))
        except OSError:
            said = b""
        self.is_ready, self.is_lost = said == READY, not said

    def note_end(self) -> None:
        """Take note that the process has ended."""
        self._pid = None

    def release_inherited(self) -> None:
        """Close, in a child, what only the RLX server may hold; the doorbell is for all."""
        if self._introductions is not None:
            self._introductions.close()

    def introduce(self) -> tuple[socket.socket, int]:
        """Return a worker's link and doorbell, both for its child alone; OSError if it cannot."""
        if self._introductions is None or self._doorbell is None:
            raise OSError("there is no compute process")
        ours, theirs = socket_pair()
        with theirs:
            try:
                socket.send_fds(self._introductions, [b"w"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours, self._doorbell

    def close(self) -> None:
        """Close this end, which ends the process."""
        self.is_ready = False
        if self._introductions is not None:
            self._introductions.close()
            self._introductions = None
        if self._doorbell is not None:
            os.close(self._doorbell)
            self._doorbell = None
