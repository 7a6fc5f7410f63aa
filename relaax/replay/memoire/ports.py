"""The gRPC ports of a server or proxy."""

import threading
from collections.abc import Callable, Sequence

import grpc

from relaax.bridge.guarded_server import GuardedServer
from relaax.replay.memoire.service import MOST_WAITING

#: Threads that answer calls at a port, beside those that hold waiting subscribers.
THREADS = 32

#: How long a port may take to close when its calls have been broken off.
CLOSE_S = 2.0

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
