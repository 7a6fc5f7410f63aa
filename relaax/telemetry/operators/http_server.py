"""An HTTP server that strangers cannot fill: a request has a deadline, an address few places."""

import io
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from ssl import SSLContext
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from relaax.net.access.file_stamp import FromFiles
from relaax.net.tls_refusals import require_a_peer

#: A connection is closed after so many seconds, wherever its request or its answer is by then.
REQUEST_S = 10.0

#: How many callers are answered at a time, in all and of one address; for one more, the longest
#: waiting is cut off: a caller that asks and reads at once is gone within milliseconds.
MOST_CALLERS = 64
MOST_OF_AN_ADDRESS = 8

#: How many threads may answer: more than callers, since a caller that is cut off needs a moment to
#: end.
_MOST_THREADS = 2 * MOST_CALLERS

#: How long a connection waits for a thread; then it is closed.
_THREAD_S = 1.0


@dataclass(frozen=True)
class _Caller:
    connection: socket.socket
    host: str
    deadline: float


class _Callers:
    """The connections that are answered now, the longest waiting first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: list[_Caller] = []

    def enter(self, connection: socket.socket, host: str) -> None:
        """Take note of a connection; cut off the oldest where there are too many."""
        with self._lock:
            of_address = [caller for caller in self._callers if caller.host == host]
            if len(of_address) >= MOST_OF_AN_ADDRESS:
                self._cut_off(of_address[0])
            elif len(self._callers) >= MOST_CALLERS:
                self._cut_off(self._callers[0])
            self._callers.append(_Caller(connection, host, time.monotonic() + REQUEST_S))

    def leave(self, connection: socket.socket) -> None:
        """Forget a connection before it is closed: its descriptor may be another one's then."""
        with self._lock:
            self._callers = [each for each in self._callers if each.connection is not connection]

    def cut_off_late(self) -> None:
        """Cut off connections whose time is up."""
        with self._lock:
            now = time.monotonic()
            for caller in [each for each in self._callers if now >= each.deadline]:
                self._cut_off(caller)

    def _cut_off(self, caller: _Caller) -> None:
        """Let the thread of a caller read the end of its connection, which it then closes."""
        self._callers.remove(caller)
        try:
            # Not the method of an encrypted one, which its thread may be reading.
            socket.socket.shutdown(caller.connection, socket.SHUT_RDWR)
        except OSError:  # the caller has left
            return


class _Answer(io.BufferedIOBase):
    """Sends an answer; BrokenPipeError, which is not logged, if its caller has left."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: Any) -> int:
        """Send all of ``data``."""
        try:
            self._connection.sendall(data)
        except OSError as error:  # with TLS, it is another one than wsgiref knows
            raise BrokenPipeError(str(error)) from error
        return len(data)


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_S

    def setup(self) -> None:
        """Let finished connections leave."""
        super().setup()
        self.wfile = _Answer(self.connection)

    def log_message(self, *_: object) -> None:
        """Log nothing: load balancers ask every few seconds."""


class HttpServer(ThreadingMixIn, WSGIServer):
    """Answers at ``listener``, which it owns, on a thread for each caller."""

    daemon_threads = True

    def __init__(
        self,
        listener: socket.socket,
        application: Callable[..., Iterable[bytes]],
        contexts: FromFiles[SSLContext] | None = None,
    ) -> None:
        self._contexts = contexts
        self._callers = _Callers()
        self._room = threading.BoundedSemaphore(_MOST_THREADS)
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        listener.setblocking(True)
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self.set_app(application)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Return a connection; the handshake of TLS is left to the thread that serves it."""
        connection, address = super().get_request()
        if self._contexts is not None:
            try:
                require_a_peer(connection)
                connection = self._contexts.content().wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
            except OSError:
                connection.close()
                raise
        return connection, address

    def service_actions(self) -> None:
        """Cut off slow callers, several times a second."""
        self._callers.cut_off_late()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own; close the connection if no thread can be started."""
        self._callers.enter(request, client_address[0])
        if not self._room.acquire(timeout=_THREAD_S):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, whether it was answered or not."""
        self._callers.leave(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not log callers that leave before their answer."""
