"""How a client reaches its server: over TCP, unless it is handed another transport."""

import socket
from typing import Protocol

from relaax.address import Address
from relaax.protocol import FrameConnection, MessageConnection


class Transport(Protocol):
    """Opens connections; hand your own to a client for TLS, a WebSocket or a test."""

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return a new connection to the server at ``address``; the client closes it.

        OSError when there is none within ``timeout_s`` seconds.
        """


class TcpTransport:
    """A TCP connection, each message in a frame."""

    def connect(self, address: Address, timeout_s: float) -> MessageConnection:
        """Return a new connection; see ``Transport``."""
        sock = socket.create_connection((address.host, address.port), timeout_s)
        try:
            return FrameConnection(sock)
        except OSError:
            sock.close()
            raise
