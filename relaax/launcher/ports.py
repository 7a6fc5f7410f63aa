"""The ports of a training on this machine: whether they are free."""

import errno
import shlex
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from relaax.address import MAX_PORT, Address
from relaax.errors import ConfigurationError
from relaax.launcher.described import Described


def require_free_ports(processes: Sequence[Described], procfile: Path) -> None:
    """Raise ConfigurationError for a port of this machine that another process listens at."""
    for process in processes:
        for address in _listens_at(process):
            if _is_taken(address):
                raise ConfigurationError(
                    f"port {address.port}, at which the line {process.line!r} of {procfile} is to "
                    f"listen, is taken by {_holder(address.port)}: stop that, or give this "
                    "training other ports, in its YAML file and in the lines of the Procfile that "
                    "name them"
                )


def free_port(host: str, preferred: int, taken: Collection[int]) -> int:
    """Return ``preferred``, or the first one above it that is free here and not ``taken``.

    It is near the servers' own ports, so that no outgoing connection gets it meanwhile, as port 0.
    A server that prefers 0 lets the system choose, and others find it by a name.
    """
    if not preferred:
        return 0
    for port in range(preferred, MAX_PORT + 1):
        if port not in taken and not _is_taken(Address(host, port)):
            return port
    raise ConfigurationError(f"no port of {host} from {preferred} on is free")


def reserved(port: int) -> socket.socket | None:
    """Reserve a port among the launchers of this machine, until the socket is closed.

    Its server listens seconds later, and another launcher would find it free until then. None where
    another one has it. The system releases the names of such sockets with their process.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0relaax-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder


def free_pair(first: int) -> int:
    """Return ``first``, or the next even number above it, where it and the next port are free."""
    for port in range(first, MAX_PORT, 2):
        if not any(_is_taken(Address("localhost", each)) for each in (port, port + 1)):
            return port
    raise ConfigurationError(f"no two ports from {first} on are free; --port-base names others")


def _listens_at(process: Described) -> Iterator[Address]:
    """Yield the addresses of a process that were written for it alone."""
    if process.listens is not None and process.copy == 0:
        yield process.listens
    yield from process.for_operators


def _is_taken(address: Address) -> bool:
    """Return whether another process listens there; all other mistakes are left to the server."""
    if not address.port:
        return False
    with suppress(OSError):
        infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, where in infos[:1]:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(where)
                except OSError as error:
                    return error.errno == errno.EADDRINUSE
    return False


def _holder(port: int) -> str:
    """Return in words which process listens at a port, as far as this user may know."""
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            own: Any = connection.laddr
            listens = connection.status == psutil.CONN_LISTEN and own.port == port
            if listens and connection.pid is not None:
                command = shlex.join(psutil.Process(connection.pid).cmdline())
                return f"process {connection.pid} ({command[:200]})"
    return "another process ('ss -ltnp' may name it)"
