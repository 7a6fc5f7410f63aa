"""Frames: a little-endian unsigned 32-bit length, then that many bytes of payload."""

import contextlib
import socket
import struct
import time

from relaax.errors import ProtocolError
from relaax.protocol.connection import MessageConnection, PeerClosed
from relaax.protocol.first_bytes import foreign_protocol, is_tls
from relaax.protocol.tls_socket import TlsSocket

DEFAULT_MAX_FRAME_BYTES = 64 * 1024 * 1024

DEFAULT_FRAME_TIMEOUT_S = 30.0

#: The options that limit the frames of an RLX server, for errors.
_SIZE_OPTION = " (--max-frame-bytes; by default enough for the configured observations)"

_HEADER = struct.Struct("<I")

_HEADER_BYTES = _HEADER.size

_RECEIVE_BYTES_AT_FIRST = 2 * 1024

_RECEIVE_BYTES = 64 * 1024

_RECEIVE_BYTES_OF_A_BIG_FRAME = 1024 * 1024

_WITHOUT_WAITING = socket.MSG_DONTWAIT


#: After so many seconds of silence the peer is asked whether it is there, so often, with such
#: pauses, before the connection is lost. A peer that thinks for long answers by its operating
#: system, and stays.
KEEPALIVE_IDLE_S, KEEPALIVE_PROBES, KEEPALIVE_INTERVAL_S = 60, 4, 15


def _notice_dead_machines(sock: socket.socket | TlsSocket) -> None:
    """Let a socket of TCP ask its peer, as far as the operating system can.

    While a message is not acknowledged the system asks nothing: it sends that again, for a quarter
    of an hour, unless it is told to give up sooner.
    """
    options = {
        "TCP_KEEPIDLE": KEEPALIVE_IDLE_S,
        "TCP_KEEPINTVL": KEEPALIVE_INTERVAL_S,
        "TCP_KEEPCNT": KEEPALIVE_PROBES,
        "TCP_USER_TIMEOUT": 1000 * (KEEPALIVE_IDLE_S + KEEPALIVE_INTERVAL_S * KEEPALIVE_PROBES),
    }
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class TlsPeer(ProtocolError):
    """A peer speaks TLS where it is not spoken."""


class FrameConnection(MessageConnection):
    """A connected stream socket that carries each message in a frame.

    It owns ``sock``. ``frame_timeout_s`` bounds how long one frame may take, in either direction,
    once it has begun.
    ``max_received_bytes``, if given, limits only received frames; it may be changed before the
    first frame with the new limit. Errors name the options of the RLX server that limit frames,
    where this ``is_servers``.
    """

    def __init__(
        self,
        sock: socket.socket | TlsSocket,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        frame_timeout_s: float = DEFAULT_FRAME_TIMEOUT_S,
        is_servers: bool = False,
        max_received_bytes: int | None = None,
    ) -> None:
        self._size_option = _SIZE_OPTION if is_servers else ""
        self._time_option = " (--message-timeout)" if is_servers else ""
        self._sock = sock
        self._max_frame_bytes = max_frame_bytes
        self.max_received_bytes = max_received_bytes or max_frame_bytes
        self._frame_timeout_s = frame_timeout_s
        #: Received bytes that have not been returned: at the end, at most one incomplete frame.
        self._received = bytearray()
        self._unsent = bytearray()
        #: When the frame that is not whole began to come, and when the unsent one began to go.
        self._receives_since = 0.0
        self._sends_since = 0.0
        self._likely_bytes = _RECEIVE_BYTES_AT_FIRST
        #: Whether nothing has been returned yet: the peer may speak another protocol.
        self._is_first = True
        sock.settimeout(None)
        if sock.family in {socket.AF_INET, socket.AF_INET6}:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # answer at once
            _notice_dead_machines(sock)

    def send(self, payload: bytes) -> None:
        """Send one frame; see ``MessageConnection``."""
        self.send_now(payload)
        if not self._unsent:
            return
        self._sock.settimeout(self._frame_timeout_s)
        try:
            self._sock.sendall(self._unsent)
            self._unsent.clear()
        finally:
            self._sock.settimeout(None)

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """Return the payload of the next frame, or None at the end; see ``MessageConnection``."""
        if not self._received:
            chunk = self._received_within(self._likely_bytes, timeout_s)
            if self._is_whole_frame(chunk):
                self._is_first = False
                return chunk[_HEADER_BYTES:]
            if not chunk:
                return None
            self._keep(chunk)
        deadline = time.monotonic() + self._frame_timeout_s
        while not self.has_message:
            self._receive_more(deadline)
        return bytes(self._take_payload())

    def receive_now(self) -> memoryview | None:
        """Return the payload of the next frame if it is there; see ``MessageConnection``."""
        if self._received and self.has_message:
            return self._take_payload()
        try:
            chunk = self._sock.recv(self._bytes_to_receive(), _WITHOUT_WAITING)
        except BlockingIOError:
            return None
        if not self._received:
            if self._is_whole_frame(chunk):
                self._is_first = False
                return memoryview(chunk)[_HEADER_BYTES:]
            if not chunk:
                raise PeerClosed("the peer has closed the connection")
            self._receives_since = time.monotonic()
        elif not chunk:
            raise self._broken_off()
        self._keep(chunk)
        return self._take_payload() if self.has_message else None

    def begun_now(self) -> bytes:
        """Return the part of the next payload that has come, and leave it there; empty without one.

        PeerClosed when the peer has closed before it; ProtocolError for a frame that is not
        allowed, TlsPeer if it is a hello of TLS instead.
        """
        with contextlib.suppress(BlockingIOError):
            chunk = self._sock.recv(self._bytes_to_receive(), _WITHOUT_WAITING)
            if not chunk:
                raise self._broken_off() if self._received else PeerClosed("the peer has closed")
            if not self._received:
                self._receives_since = time.monotonic()
            self._received += chunk
        if is_tls(self._received):
            raise _foreign("TLS")
        if len(self._received) >= _HEADER_BYTES:
            self._announced_length()
        return bytes(self._received[_HEADER_BYTES:])

    def send_now(self, payload: bytes) -> None:
        """Send as much of one frame as fits; see ``MessageConnection``."""
        if not 0 < len(payload) <= self._max_frame_bytes:
            raise ValueError(
                f"a frame holds 1 to {self._max_frame_bytes} bytes, this one has {len(payload)}"
            )
        frame = _HEADER.pack(len(payload)) + payload
        if self._unsent:
            self._unsent += frame
            return
        sent = self._send_what_fits(frame)
        if sent < len(frame):
            self._unsent += memoryview(frame)[sent:]
            self._sends_since = time.monotonic()

    def flush(self) -> None:
        """Send as much of the rest as fits; see ``MessageConnection``."""
        while self._unsent:
            sent = self._send_what_fits(self._unsent)
            if not sent:
                return
            del self._unsent[:sent]
        self._receives_since = time.monotonic()

    @property
    def is_unsent(self) -> bool:
        """Whether a part of a frame is left to be sent."""
        return bool(self._unsent)

    @property
    def has_message(self) -> bool:
        """Whether a whole frame has come, or the header of a refused one."""
        if len(self._received) < _HEADER_BYTES:
            return False
        length: int = _HEADER.unpack_from(self._received)[0]
        is_allowed = 0 < length <= self.max_received_bytes
        return not is_allowed or len(self._received) >= _HEADER_BYTES + length

    def require_progress(self, now: float) -> None:
        """Raise when a frame is overdue; see ``MessageConnection``."""
        if self._unsent and now > self._sends_since + self._frame_timeout_s:
            raise TimeoutError(
                f"the peer has not taken {len(self._unsent)} bytes of a frame within "
                f"{self._frame_timeout_s:g} s{self._time_option}"
            )
        # While an answer waits, nothing is read, and the rest of a frame may lie there.
        if self._unsent or not self._awaits_more:
            return
        if now > self._receives_since + self._frame_timeout_s:
            raise self._overdue()

    def go_on_without_tls(self) -> None:
        """Read in plain the bytes of a peer without TLS: see ``PlainPeer``."""
        if isinstance(self._sock, TlsSocket):
            self._sock = self._sock.without_tls()

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def release(self) -> None:
        """Close this process' descriptor; where another process has one, it stays connected."""
        self._sock.close()

    def fileno(self) -> int:
        """Return the socket's descriptor; -1 after ``close``."""
        return self._sock.fileno()

    @property
    def _awaits_more(self) -> bool:
        return bool(self._received) and not self.has_message

    def _received_within(self, size: int, timeout_s: float | None) -> bytes:
        if timeout_s is None:
            return self._sock.recv(size)
        self._sock.settimeout(timeout_s)
        try:
            return self._sock.recv(size)
        finally:
            self._sock.settimeout(None)

    def _is_whole_frame(self, chunk: bytes) -> bool:
        """Return whether ``chunk`` is one frame and nothing else, as it mostly is."""
        length = len(chunk) - _HEADER_BYTES
        return 0 < length <= self.max_received_bytes and length == _HEADER.unpack_from(chunk)[0]

    def _send_what_fits(self, data: bytes | bytearray) -> int:
        try:
            return self._sock.send(data, _WITHOUT_WAITING)
        except BlockingIOError:
            return 0

    def _keep(self, chunk: bytes) -> None:
        self._received += chunk
        self._likely_bytes = _RECEIVE_BYTES
        if self._is_first and is_tls(self._received):
            raise _foreign("TLS")

    def _announced_length(self) -> int:
        length: int = _HEADER.unpack_from(self._received)[0]
        if not 0 < length <= self.max_received_bytes:
            name = foreign_protocol(self._received) if self._is_first else None
            if name is not None:
                raise _foreign(name)
            raise ProtocolError(
                f"a frame of {length} bytes was announced; 1 to {self.max_received_bytes} are "
                f"allowed"
                f"{self._size_option}"
            )
        return length

    def _missing(self) -> int:
        """Return how many bytes of the header, or of the frame, are still to come."""
        if len(self._received) < _HEADER_BYTES:
            return _HEADER_BYTES - len(self._received)
        return _HEADER_BYTES + self._announced_length() - len(self._received)

    def _bytes_to_receive(self) -> int:
        if not self._received:
            return self._likely_bytes
        return min(max(self._missing(), _RECEIVE_BYTES), _RECEIVE_BYTES_OF_A_BIG_FRAME)

    def _receive_more(self, deadline: float) -> None:
        """Wait for more of a frame that has begun."""
        left_s = max(deadline - time.monotonic(), 0.001)
        try:
            chunk = self._received_within(self._bytes_to_receive(), left_s)
        except TimeoutError as error:
            raise self._overdue() from error
        if not chunk:
            raise self._broken_off()
        self._keep(chunk)

    def _take_payload(self) -> memoryview:
        """Return the payload of a whole frame; it is not copied if it came alone."""
        end = _HEADER_BYTES + self._announced_length()
        self._is_first = False
        frame = self._received
        if len(frame) == end:
            self._received = bytearray()
        else:
            self._received = frame[end:]
            self._receives_since = time.monotonic()
        return memoryview(frame)[_HEADER_BYTES:end]

    def _overdue(self) -> ProtocolError:
        return ProtocolError(
            f"{self._missing()} bytes of a frame did not arrive within {self._frame_timeout_s:g} s"
            f"{self._time_option}"
        )

    def _broken_off(self) -> ProtocolError:
        return ProtocolError(f"the peer closed {self._missing()} bytes before the end of a frame")


def _foreign(name: str) -> ProtocolError:
    kind = TlsPeer if name == "TLS" else ProtocolError
    return kind(
        f"the peer speaks {name} instead of RLX: check the address that connects to the other, and "
        "that both ends use TLS or neither"
    )
