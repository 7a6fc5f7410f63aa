"""Calls a server of this machine as from another address: 127.0.0.2, say."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

#: How often the thread looks whether it should end.
_POLL_S = 0.1

_CHUNK_BYTES = 64 * 1024


@contextlib.contextmanager
def calling_from(host: str, target: str) -> Iterator[str]:
    """Yield an address, connections to which go on to ``target`` (host:port), from ``host``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = threading.Event()
        thread = threading.Thread(target=_pass_on, args=(listener, host, target, ends))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ends.set()
            thread.join()


def _pass_on(listener: socket.socket, host: str, target: str, ends: threading.Event) -> None:
    to, _, port = target.rpartition(":")
    others: dict[socket.socket, socket.socket] = {}
    with contextlib.ExitStack() as opened, selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while not ends.is_set():
            for key, _ in selector.select(_POLL_S):
                if key.fileobj is listener:
                    near = opened.enter_context(listener.accept()[0])
                    far = socket.create_connection((to, int(port)), 20, source_address=(host, 0))
                    opened.enter_context(far)
                    for end, other in ((near, far), (far, near)):
                        others[end] = other
                        selector.register(end, selectors.EVENT_READ)
                    continue
                end = key.fileobj
                if not _hand_on(end, others[end]):
                    selector.unregister(end)


def _hand_on(end: socket.socket, other: socket.socket) -> bool:
    """Pass on what has come; return whether more may follow."""
    with contextlib.suppress(OSError):
        data = end.recv(_CHUNK_BYTES)
        if data:
            other.sendall(data)
            return True
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)
    return False
