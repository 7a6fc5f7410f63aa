"""How a connection finds out that its peer's machine is gone, which closes nothing."""

import socket
from dataclasses import dataclass

from relaax.protocol.tls_socket import TlsSocket


@dataclass(frozen=True)
class Keepalive:
    """When a silent peer is asked whether it is there, and when it is given up.

    A peer that thinks for long answers by its operating system, and stays.
    """

    #: So long a connection is silent before the peer is asked, in seconds.
    idle_s: int = 60
    #: Between two questions.
    interval_s: int = 15
    #: So many go unanswered before the connection is lost.
    probes: int = 4

    @property
    def gone_after_s(self) -> int:
        """After so many seconds a peer that is gone is given up."""
        return self.idle_s + self.interval_s * self.probes

    def apply(self, sock: socket.socket | TlsSocket) -> None:
        """Let a socket of TCP notice it; as far as the operating system can.

        While a message is not acknowledged the system asks nothing: it sends that again, for a
        quarter of an hour, unless it is told to give up sooner.
        """
        options = {
            "TCP_KEEPIDLE": self.idle_s,
            "TCP_KEEPINTVL": self.interval_s,
            "TCP_KEEPCNT": self.probes,
            "TCP_USER_TIMEOUT": 1000 * self.gone_after_s,
        }
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options.items():
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
