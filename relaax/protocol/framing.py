"""Frames: a little-endian unsigned 32-bit length, then that many bytes of payload."""

import contextlib
import socket
import struct
import time

from relaax.errors import ProtocolError

DEFAULT_MAX_FRAME_BYTES = 64 * 1024 * 1024
DEFAULT_FRAME_TIMEOUT_S = 30.0

_HEADER = struct.Struct("<I")
_RECEIVE_BYTES_AT_FIRST = 2 * 1024
_RECEIVE_BYTES = 64 * 1024
_RECEIVE_BYTES_OF_A_BIG_FRAME = 1024 * 1024
_SEND_NOW_OR_NOT = getattr(socket, "MSG_DONTWAIT", 0)
_KEEPALIVE_OPTIONS = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class FrameConnection:
    """A connected stream socket that carries whole frames in both directions.

    It owns ``sock``. ``frame_timeout_s`` bounds how long one frame may take, in either direction,
    once it has begun. The wait for a frame to begin is unlimited unless ``idle_timeout_s`` is
    given.
    """

    def __init__(
        self,
        sock: socket.socket,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        frame_timeout_s: float = DEFAULT_FRAME_TIMEOUT_S,
        idle_timeout_s: float | None = None,
    ) -> None:
        self._sock = sock
        self._max_frame_bytes = max_frame_bytes
        self._frame_timeout_s = frame_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._received = bytearray()
        self._likely_bytes = _RECEIVE_BYTES_AT_FIRST
        sock.settimeout(idle_timeout_s)
        _answer_at_once_and_notice_dead_peers(sock)

    def send(self, payload: bytes) -> None:
        """Send one frame.

        Raises ``ValueError`` for a payload that no frame can hold, and ``OSError`` when the peer
        has gone or does not take the frame in time.
        """
        if not 0 < len(payload) <= self._max_frame_bytes:
            raise ValueError(
                f"a frame holds 1 to {self._max_frame_bytes} bytes, this one has {len(payload)}"
            )
        frame = _HEADER.pack(len(payload)) + payload
        sent = self._send_what_fits(frame)
        if sent < len(frame):
            self._send_rest(memoryview(frame)[sent:])

    def send_if_possible(self, payload: bytes) -> None:
        """Send a last frame without waiting; a peer that has no room for it goes without."""
        with contextlib.suppress(OSError):
            self._sock.send(_HEADER.pack(len(payload)) + payload, _SEND_NOW_OR_NOT)

    def receive(self) -> bytes | None:
        """Return the payload of the next frame, or ``None`` when the peer closed before it.

        Raises ``ProtocolError`` for a frame that breaks off, has an impossible length or does not
        arrive in time, ``TimeoutError`` when none begins within ``idle_timeout_s``, and
        ``OSError`` when the connection is lost.
        """
        if not self._received:
            chunk = self._sock.recv(self._likely_bytes)
            if not chunk:
                return None
            if self._is_whole_frame(chunk):
                return chunk[_HEADER.size :]
            self._received += chunk
            self._likely_bytes = _RECEIVE_BYTES
        deadline = time.monotonic() + self._frame_timeout_s
        self._receive_until(_HEADER.size, deadline)
        end = _HEADER.size + self._announced_length()
        self._receive_until(end, deadline)
        return self._take_payload(end)

    def close(self) -> None:
        """Close the connection; closing twice is allowed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def fileno(self) -> int:
        """Return the socket's descriptor, for ``select``; -1 after ``close``."""
        return self._sock.fileno()

    def _is_whole_frame(self, chunk: bytes) -> bool:
        """Return whether ``chunk`` is one frame and nothing else, as it mostly is."""
        length = len(chunk) - _HEADER.size
        return 0 < length <= self._max_frame_bytes and length == _HEADER.unpack_from(chunk)[0]

    def _send_what_fits(self, frame: bytes) -> int:
        try:
            return self._sock.send(frame, _SEND_NOW_OR_NOT)
        except BlockingIOError:
            return 0

    def _send_rest(self, rest: memoryview) -> None:
        self._sock.settimeout(self._frame_timeout_s)
        try:
            self._sock.sendall(rest)
        finally:
            self._sock.settimeout(self._idle_timeout_s)

    def _announced_length(self) -> int:
        length: int = _HEADER.unpack_from(self._received)[0]
        if not 0 < length <= self._max_frame_bytes:
            raise ProtocolError(
                f"a frame of {length} bytes was announced; 1 to {self._max_frame_bytes} are allowed"
            )
        return length

    def _receive_until(self, size: int, deadline: float) -> None:
        """Receive until ``size`` bytes are buffered."""
        if len(self._received) >= size:
            return
        try:
            while len(self._received) < size:
                self._receive_more(size, deadline)
        finally:
            self._sock.settimeout(self._idle_timeout_s)

    def _receive_more(self, size: int, deadline: float) -> None:
        self._sock.settimeout(max(deadline - time.monotonic(), 0.001))
        missing = size - len(self._received)
        wanted = min(max(missing, _RECEIVE_BYTES), _RECEIVE_BYTES_OF_A_BIG_FRAME)
        try:
            chunk = self._sock.recv(wanted)
        except TimeoutError as error:
            raise ProtocolError(
                f"{missing} bytes of a frame did not arrive within {self._frame_timeout_s:g} s"
            ) from error
        if not chunk:
            raise ProtocolError(f"the peer closed {missing} bytes before the end of a frame")
        self._received += chunk

    def _take_payload(self, end: int) -> bytes:
        with memoryview(self._received) as received:
            payload = bytes(received[_HEADER.size : end])
        del self._received[:end]
        return payload


def _answer_at_once_and_notice_dead_peers(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in _KEEPALIVE_OPTIONS.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
