"""The ports of a training on this machine: whether they are free, and when servers listen."""

import errno
import shlex
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from relaax.address import Address, Addresses
from relaax.errors import ConfigurationError
from relaax.launcher.engines.plan import Planned

#: Waits until this machine listens at one of the ports that it is given, without connecting: each
#: connection takes random numbers of an RLX server. Where that cannot be seen, it waits for none.
_WAIT = """\
import sys, time
ports = {f"{int(port):04X}" for port in sys.argv[1:]}
def listens():
    for name in ("tcp", "tcp6"):
        try:
            rows = open(f"/proc/net/{name}").read().splitlines()[1:]
        except OSError:
            if name == "tcp":
                return True
            continue
        for row in rows:
            _, local, _, state, *_ = row.split()
            if state == "0A" and local.rpartition(":")[2] in ports:
                return True
    return False
while not listens():
    time.sleep(0.05)
"""

#: How an environment's program is told where its RLX server is.
_TO_SERVER = "--rlx-server"

_RLX_SERVER = "relaax-rlx-server"


def require_free_ports(processes: Sequence[Planned], procfile: Path) -> None:
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


def waiting_for_servers(command: str, ports: Sequence[int]) -> str:
    """Return a command that begins when its RLX server listens, if that is at one of ``ports``.

    So it never connects to another server that stands there before.
    """
    named = [port for port in servers_of(command) if port in ports]
    if not named:
        return command
    wait = shlex.join([sys.executable, "-E", "-S", "-c", _WAIT, *map(str, named)])
    return f"{wait}\n{command}"


def ports_of_rlx_servers(processes: Sequence[Planned]) -> list[int]:
    """Return where the RLX servers among processes listen on this machine."""
    return [
        process.listens.port
        for process in processes
        if process.program == _RLX_SERVER and process.listens is not None and process.listens.port
    ]


def free_pair(first: int) -> int:
    """Return ``first``, or the next even number above it, where it and the next port are free."""
    for port in range(first, 2**16 - 1, 2):
        if not any(_is_taken(Address("localhost", each)) for each in (port, port + 1)):
            return port
    raise ConfigurationError(f"no two ports from {first} on are free; --port-base names others")


def _listens_at(process: Planned) -> Iterator[Address]:
    """Yield the addresses of a process that were written for it alone."""
    if process.listens is not None and process.copy == 0:
        yield process.listens
    operators = process.for_operators
    if operators is not None:
        yield Address(operators.host, operators.port + process.copy)


def _is_taken(address: Address | Addresses) -> bool:
    """Return whether another process listens there; what else is wrong its server will say."""
    if not isinstance(address, Address) or not address.port:
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


def servers_of(command: str) -> Iterator[int]:
    """Yield the ports of this machine that a command connects to as to an RLX server."""
    with suppress(ValueError):
        words = shlex.split(command)
        for word, following in zip(words, [*words[1:], ""], strict=True):
            option, has_value, value = word.partition("=")
            if option == _TO_SERVER:
                with suppress(ConfigurationError):
                    address = Address.parse(value if has_value else following)
                    if address.host in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
                        yield address.port
