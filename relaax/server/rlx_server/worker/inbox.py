"""A shared worker's end of the channel that brings its connections."""

import logging
import socket

from relaax.server.rlx_server.handover import MOST_CLOSED, Report
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)


class Inbox:
    """Brings connections that the RLX server has accepted, and reports how many are served.

    It owns ``channel``, which keeps packets apart.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        channel.setblocking(False)
        self._taken = 0
        #: Connections taken and environments served, as they were reported last.
        self._reported: tuple[int, int, int] | None = None
        #: The addresses of clients whose connections have been closed, and are not reported yet.
        self._closed: list[str] = []
        #: Whether the RLX server may send more.
        self.is_open = True

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._channel.fileno()

    def take(self) -> list[tuple[socket.socket, str]]:
        """Return the connections that have come, each with the address of its client."""
        taken: list[tuple[socket.socket, str]] = []
        while (packet := self._receive()) is not None:
            peer, descriptors = packet
            self._taken += 1
            if descriptors:
                taken.append((socket.socket(fileno=descriptors[0]), peer))
            else:
                _log.warning(
                    "lost the connection from %s: no file descriptor is free", peer,
                    extra=of_kind("files", at_once=1),
                )  # fmt: skip
                self._closed.append(peer)
        return taken

    def note_closed(self, peer: str) -> None:
        """Note that a connection is closed, for the next report."""
        self._closed.append(peer)

    def report(self, environments: int, waiting: int = 0) -> None:
        """Report this worker's load to the RLX server, if it has changed.

        ``waiting`` connections have not proved yet that they may be served.
        """
        report, closed = (self._taken, environments, waiting), tuple(self._closed[:MOST_CLOSED])
        if report == self._reported and not closed:
            return
        try:
            self._channel.send(Report(*report, closed).pack())
            self._reported = report
            del self._closed[: len(closed)]
        except BlockingIOError:  # the RLX server has much to read: the next turn reports again
            return
        except OSError:
            self.is_open = False

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _receive(self) -> tuple[str, list[int]] | None:
        """Return a client's address and its connection's descriptor, if they have come."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, 256, 1)
        except BlockingIOError:
            return None
        except OSError:
            data, descriptors = b"", []
        if not data:
            self.is_open = False
            return None
        return data.decode(), descriptors
