"""A socket that speaks TLS, with the calls that frames need of one."""

import select
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from relaax.errors import AccessDenied
from relaax.net.tls_refusals import refusal_in_words, require_a_peer, speaks_no_tls
from relaax.protocol.first_bytes import RLX_BYTES, is_plain_rlx

T = TypeVar("T")

#: Requested at a time: more than one record of TLS.
_RECORD_BYTES = 16 * 1024


class PlainPeer(AccessDenied):
    """A peer speaks RLX without TLS, where TLS is spoken."""


class NoTls(AccessDenied):
    """A peer has answered without TLS."""


class TlsSocket:
    """Wraps ``sock``, which it owns from then on; the handshake is a part of the first receiving.

    ``server_name`` is the name that a client expects in the certificate; None for a server. NoTls
    when the peer does not speak TLS, AccessDenied when its certificate is not accepted. PlainPeer
    for a server whose client begins with RLX: nothing has been read then, and ``without_tls`` goes
    on.

    ``recv`` may return more than asked for: no bytes that have come are kept inside, where a poll
    of the descriptor does not see them.
    """

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None
    ) -> None:
        self._timeout_s: float | None = None
        #: Whether a client may still turn out to speak no TLS: nothing of it has come.
        self._may_be_plain = server_name is None
        sock.setblocking(False)
        self.family = sock.family
        try:
            require_a_peer(sock)
            self._tls = context.wrap_socket(
                sock,
                server_side=server_name is None,
                do_handshake_on_connect=False,
                server_hostname=server_name,
            )
        except BaseException:
            sock.close()
            raise

    def settimeout(self, seconds: float | None) -> None:
        """Let calls without MSG_DONTWAIT wait for so long; None for ever."""
        self._timeout_s = seconds

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Return bytes that have come, at least one; empty at the end. See ``socket.recv``."""
        chunk = self._when_ready(lambda: self._tls.recv(max(size, _RECORD_BYTES)), flags)
        pending = self._tls.pending() if chunk else 0
        return chunk + self._tls.recv(pending) if pending else chunk

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Send as much of ``data`` as the peer takes; return how much. See ``socket.send``."""
        return self._when_ready(lambda: self._tls.send(data), flags)

    def sendall(self, data: bytes | bytearray) -> None:
        """Send all of it; TimeoutError when the peer does not take it in time."""
        rest = memoryview(data)
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while rest:
            rest = rest[self._within(deadline, partial(self._tls.send, rest)) :]

    def shake_hands(self, timeout_s: float) -> None:
        """Let both ends prove their identity; TimeoutError if that takes too long."""
        self._within(time.monotonic() + timeout_s, self._tls.do_handshake)

    def without_tls(self) -> socket.socket:
        """Return the socket itself, with the same descriptor; this one must not be used then."""
        return socket.socket(fileno=self._tls.detach())

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Set an option of the socket."""
        self._tls.setsockopt(level, option, value)

    def fileno(self) -> int:
        """Return the descriptor to poll; -1 after ``close``."""
        return self._tls.fileno()

    def shutdown(self, how: int) -> None:
        """Shut the connection down; the peer is not waited for."""
        self._tls.shutdown(how)

    def close(self) -> None:
        """Close the socket."""
        self._tls.close()

    def _when_ready(self, call: Callable[[], T], flags: int) -> T:
        if flags & socket.MSG_DONTWAIT:
            try:
                return self._explained(call)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                raise BlockingIOError from error
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        return self._within(deadline, call)

    def _within(self, deadline: float | None, call: Callable[[], T]) -> T:
        """Return the result of ``call``, once the socket is ready for it."""
        while True:
            try:
                return self._explained(call)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self._tls, event)
        left_s = None if deadline is None else max(deadline - time.monotonic(), 0)
        if not poll.poll(None if left_s is None else left_s * 1000):
            raise TimeoutError("timed out")

    def _explained(self, call: Callable[[], T]) -> T:
        if self._may_be_plain:
            self._look_at_first()
        try:
            return call()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError) as error:
            raise ConnectionResetError("the peer has closed the connection") from error
        except ssl.SSLCertVerificationError as error:
            raise AccessDenied(
                f"the peer's certificate is not accepted: {error.verify_message}"
            ) from error
        except ssl.SSLError as error:
            if speaks_no_tls(error):
                raise NoTls("the peer does not speak TLS") from error
            reason = refusal_in_words(error)
            if reason is None:
                raise ConnectionAbortedError(f"TLS: {error.reason or error}") from error
            raise AccessDenied(reason) from error

    def _look_at_first(self) -> None:
        """Look once, when something has come, and leave it there."""
        try:
            first = socket.socket.recv(self._tls, RLX_BYTES, socket.MSG_PEEK)
        except (
            OSError
        ):  # no bytes have come; or the connection is lost, which the next call reports
            return
        self._may_be_plain = False
        if is_plain_rlx(first):
            raise PlainPeer("this port speaks TLS, and the client does not (RELAAX_TLS_CA)")
