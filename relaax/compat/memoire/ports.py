"""The gRPC ports of a server or proxy."""

import threading
from collections.abc import Callable, Sequence
from enum import Enum

import grpc

from relaax.address import Address
from relaax.compat.memoire.service import MOST_WAITING
from relaax.errors import ConfigurationError
from relaax.net.guarded_server import GuardedServer

#: Threads that answer calls at a port, beside those that hold waiting subscribers.
THREADS = 32

#: How long a port may take to close when its calls have been broken off.
CLOSE_S = 2.0

_TCP, _IPC, _INPROC = "tcp://", "ipc://", "inproc://"


class Mode(Enum):
    """Whether an end listens (``Bind``) or calls (``Conn``)."""

    Bind = "Bind"
    Conn = "Conn"


Bind, Conn = Mode.Bind, Mode.Conn


def is_endpoint(text: str) -> bool:
    """Return whether a text can be meant as an endpoint."""
    return "://" in text or ":" in text


def is_inproc(endpoint: str) -> bool:
    """Return whether an endpoint is one inside of a process."""
    return endpoint.startswith(_INPROC)


def target_of(endpoint: str) -> str:
    """Return what gRPC calls ``tcp://HOST:PORT``, ``ipc://PATH``, or HOST:PORT.

    ``*`` as the host is every address of this machine. ConfigurationError for others.
    """
    if endpoint.startswith(_IPC) and len(endpoint) > len(_IPC):
        return f"unix:{endpoint.removeprefix(_IPC)}"
    if is_inproc(endpoint) or endpoint.startswith(_IPC):
        raise ConfigurationError(f"{endpoint!r} cannot be reached from another process")
    host_and_port = endpoint.removeprefix(_TCP)
    if host_and_port.startswith("*:"):
        host_and_port = "0.0.0.0" + host_and_port[1:]  # noqa: S104 - the user's own "*"
    try:
        return str(Address.parse(host_and_port))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"an endpoint is tcp://HOST:PORT, tcp://*:PORT to listen everywhere, or ipc://PATH; "
            f"this is {endpoint!r}"
        ) from error


#: Makes what answers calls at a port.
Handlers = Callable[[], Sequence[grpc.GenericRpcHandler]]


class Ports:
    """Ports by target, each opened once; ``handlers`` are made for each of them."""

    def __init__(self) -> None:
        self._servers: dict[str, GuardedServer] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many ports are open."""
        return len(self._servers)

    def open(self, target: str, handlers: Handlers, most_calls: int, most_bytes: int) -> None:
        """Answer at a target, unless a port is open there already; OSError if it is taken.

        Further calls than ``most_calls`` at once are refused, and tried again by their clients;
        0 sets no limit. A message has at most ``most_bytes``.
        """
        with self._lock:
            if target not in self._servers and not self._is_closed:
                self._servers[target] = _started(target, handlers(), most_calls, most_bytes)

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        with self._lock:
            self._is_closed = True
            ends = [server.stop(grace_s) for server in self._servers.values()]
            for end in ends:
                end.wait(grace_s + CLOSE_S)


def _started(
    target: str, handlers: Sequence[grpc.GenericRpcHandler], most_calls: int, most_bytes: int
) -> GuardedServer:
    server = GuardedServer(THREADS + MOST_WAITING, handlers, most_calls or None, most_bytes)
    server.start(target)
    return server
