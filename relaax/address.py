"""HOST:PORT."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any

from relaax.errors import ConfigurationError

MAX_PORT = 65535

_WRITTEN = re.compile(
    r"(?P<host>[^\s:/\[\]]+|\[(?P<ipv6>[^\s/\[\]]*:[^\s/\[\]]*)\]):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address of ``HOST:PORT`` or ``[IPv6]:PORT``; else ConfigurationError."""
        written = _WRITTEN.fullmatch(text)
        if written is None or int(written["port"]) > MAX_PORT:
            raise ConfigurationError(
                f"an address is HOST:PORT with a port up to {MAX_PORT}, such as localhost:7001 "
                f"or [::1]:7001 with an IPv6 address in brackets; this is {text!r}"
            )
        return cls(written["ipv6"] or written["host"], int(written["port"]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def peer_of(address: tuple[Any, ...]) -> str:
    """Return ``host:port`` of a connection's remote address, as a socket has it.

    An IPv6 port that also takes IPv4 has IPv4 addresses in another form.
    """
    return f"{address[0].removeprefix('::ffff:')}:{address[1]}"


def host_of(peer: str) -> str:
    """Return the address of a client without its port, which is another one each time."""
    return peer.rpartition(":")[0]


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine as no other one reaches it.

    False, too, for a name that is not known: it may be known to others.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # it is a name
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(each[4][0])).is_loopback for each in found)


class Addresses(tuple[Address, ...]):
    """The addresses of one server in several processes; as one text, with commas between them."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(map(str, self))
