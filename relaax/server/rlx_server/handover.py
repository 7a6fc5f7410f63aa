"""Both ends of the channel that brings connections to a shared worker."""

import logging
import socket
import struct
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Self

from relaax.address import host_of
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)


#: More than a report has: see ``MOST_CLOSED``.
_PACKET_BYTES = 64 * 1024

#: So many connections may be on their way to a worker. The channel has room for more: some 270 of
#: Linux's usual buffers.
MOST_ON_THE_WAY = 128

#: A report names no more closed connections than these; the next one names more.
MOST_CLOSED = 256


@dataclass(frozen=True)
class Report:
    """The report of a shared worker. The first one shows that it is ready."""

    _FORMAT: ClassVar[struct.Struct] = struct.Struct("<qqq")

    #: Connections that it has taken since its start.
    taken: int
    #: Environments that it serves now; a connection without a first message counts as one.
    environments: int
    #: Connections that have not proved yet that they may be served.
    waiting: int = 0
    #: The clients' addresses of connections that have been closed since the report before.
    closed: tuple[str, ...] = ()

    def pack(self) -> bytes:
        """Return the packet."""
        head = self._FORMAT.pack(self.taken, self.environments, self.waiting)
        return head + "\n".join(self.closed).encode()

    @classmethod
    def unpack(cls, packet: bytes) -> Self:
        """Return the report in a packet."""
        head, rest = packet[: cls._FORMAT.size], packet[cls._FORMAT.size :]
        taken, environments, waiting = cls._FORMAT.unpack(head)
        return cls(taken, environments, waiting, tuple(rest.decode().splitlines()))


class Outbox:
    """Hands accepted connections over to one worker, and keeps its reports.

    It owns ``channel``, which keeps packets apart. A worker that has not started yet finds its
    connections when it has.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        channel.setblocking(False)  # a worker that hangs must not hold up the RLX server
        self._handed_over = 0
        self._report: Report | None = None
        #: How many connections of each address it has.
        self._by_host: Counter[str] = Counter()
        #: Whether the worker has closed its end.
        self.is_lost = False

    @property
    def is_ready(self) -> bool:
        """Whether the worker has started and serves."""
        return self._report is not None

    @property
    def has_room(self) -> bool:
        """Whether not too many connections are on their way."""
        return self._on_the_way < MOST_ON_THE_WAY

    @property
    def _on_the_way(self) -> int:
        return self._handed_over - (0 if self._report is None else self._report.taken)

    @property
    def environments(self) -> int:
        """Environments that the worker serves; a connection on its way counts as one."""
        return (0 if self._report is None else self._report.environments) + self._on_the_way

    @property
    def load(self) -> int:
        """The same, with the connections that have not proved yet that they may be served."""
        return self.environments + self._waiting

    @property
    def connections(self) -> int:
        """Connections that the worker has, or will have; without unproved ones."""
        return self._by_host.total() - self._waiting

    @property
    def _waiting(self) -> int:
        return 0 if self._report is None else self._report.waiting

    def connections_of(self, host: str) -> int:
        """Return how many of them come from an address."""
        return self._by_host[host]

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._channel.fileno()

    def listen(self) -> None:
        """Take the worker's reports."""
        while not self.is_lost:
            try:
                packet = self._channel.recv(_PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if packet:
                self._report = Report.unpack(packet)
                self._by_host -= Counter(map(host_of, self._report.closed))
            else:
                self.is_lost = True

    def hand_over(self, connection: socket.socket, peer: str) -> None:
        """Give a connection to the worker; OSError when it does not take it. The caller closes."""
        socket.send_fds(self._channel, [peer.encode()], [connection.fileno()])
        self._handed_over += 1
        self._by_host[host_of(peer)] += 1

    def close(self) -> None:
        """Close the channel, which ends the worker."""
        self._channel.close()


def channel() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection that keeps packets apart and shows when its peer is gone."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


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
