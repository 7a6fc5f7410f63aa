"""The gRPC ports of a server or proxy."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from relaax.address import Address
from relaax.bridge import channel_options
from relaax.bridge.control import require_free
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
        self._servers: dict[str, grpc.Server] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many ports are open."""
        return len(self._servers)

    def open(self, target: str, handlers: Handlers, most_calls: int) -> None:
        """Answer at a target, unless a port is open there already; OSError if it is taken.

        Further calls than ``most_calls`` at once are refused, and tried again by their clients;
        0 sets no limit.
        """
        with self._lock:
            if target not in self._servers and not self._is_closed:
                self._servers[target] = _started(target, handlers(), most_calls)

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        with self._lock:
            self._is_closed = True
            ends = [server.stop(grace_s) for server in self._servers.values()]
            for end in ends:
                end.wait(grace_s + CLOSE_S)


def _started(
    target: str, handlers: Sequence[grpc.GenericRpcHandler], most_calls: int
) -> grpc.Server:
    server = grpc.server(
        ThreadPoolExecutor(THREADS + MOST_WAITING),
        handlers=handlers,
        options=channel_options.SERVER,
        maximum_concurrent_rpcs=most_calls or None,
    )
    try:
        if not target.startswith("unix:"):
            require_free(Address.parse(target))
        server.add_insecure_port(target)
    except (OSError, RuntimeError) as error:
        raise OSError(f"cannot listen at {target}: {error}") from error
    server.start()
    return server
