"""An HTTP proxy that takes CONNECT, and variables of the environment that name one."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from processes import free_port

#: What programs read of a proxy, in both spellings.
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")

_CHUNK_BYTES = 64 * 1024


def name_a_dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all variables of this process, and of those that it starts, name a proxy that is dead."""
    dead = f"http://127.0.0.1:{free_port()}"
    for name in _VARIABLES:
        monkeypatch.setenv(name, dead)
        monkeypatch.setenv(name.upper(), dead)
    monkeypatch.setenv("GRPC_ADDRESS_HTTP_PROXY", dead.removeprefix("http://"))
    monkeypatch.setenv("GRPC_ADDRESS_HTTP_PROXY_ENABLED_ADDRESSES", "127.0.0.0/8")
    forget_exceptions(monkeypatch)


def forget_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no variable name servers that are called without a proxy."""
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)


class HttpProxy:
    """Connects callers to where they ask for, or refuses them; keeps where that was."""

    def __init__(self, listener: socket.socket, refuses: bool) -> None:
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        self.asked: list[str] = []
        self._listener, self._refuses = listener, refuses

    def serve(self) -> None:
        """Serve until the listener is shut down."""
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += near.recv(1)
            method, target, _ = head.decode().split(" ", 2)
            self.asked.append(f"{method} {target}")
            if self._refuses:
                near.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
                return
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port)), 20) as far:
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
                back.start()
                _pass_on(near, far)
                back.join()


@contextlib.contextmanager
def http_proxy(refuses: bool = False) -> Iterator[HttpProxy]:
    """Yield a proxy; a test ends what it has connected before this ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = HttpProxy(listener, refuses)
        thread = threading.Thread(target=proxy.serve, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _pass_on(end: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := end.recv(_CHUNK_BYTES):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)
