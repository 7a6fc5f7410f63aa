import select
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from relaax.errors import ProtocolError
from relaax.protocol.connection import PeerClosed
from relaax.protocol.framing import FrameConnection


@pytest.fixture
def pair() -> Iterator[tuple[FrameConnection, socket.socket]]:
    """A connection under test, and the bare socket of its peer."""
    ours, theirs = socket.socketpair()
    connection = FrameConnection(ours, max_frame_bytes=4 * 1024 * 1024, frame_timeout_s=0.2)
    theirs.settimeout(30)
    yield connection, theirs
    connection.close()
    theirs.close()


def test_a_frame_is_a_little_endian_length_and_the_payload(pair) -> None:
    connection, peer = pair
    connection.send(b'["act", 3]')
    assert peer.recv(100) == b'\x0a\x00\x00\x00["act", 3]'


def test_a_frame_that_comes_whole_is_received(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x03\x00\x00\x00abc")
    assert connection.receive() == b"abc"


def test_a_frame_that_comes_byte_by_byte_is_received() -> None:
    ours, theirs = socket.socketpair()
    connection = FrameConnection(ours)
    sender = threading.Thread(
        target=lambda: [theirs.send(bytes([byte])) for byte in b"\x03\x00\x00\x00abc"]
    )
    sender.start()
    assert connection.receive() == b"abc"
    sender.join()
    connection.close()
    theirs.close()


def test_frames_that_come_together_are_received_one_by_one(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a\x02\x00\x00\x00bc\x01\x00\x00\x00d")
    assert [connection.receive() for _ in range(3)] == [b"a", b"bc", b"d"]


def test_big_frames_pass_in_both_directions() -> None:
    ours, theirs = socket.socketpair()
    payload = bytes(range(256)) * 40_000
    left, right = FrameConnection(ours), FrameConnection(theirs)
    received: list[bytes | None] = []
    echo = threading.Thread(target=lambda: right.send(right.receive() or b"nothing came"))
    echo.start()
    left.send(payload)
    received.append(left.receive())
    echo.join()
    assert received == [payload]
    left.close()
    right.close()


def test_a_close_between_frames_is_the_end(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a")
    peer.close()
    assert connection.receive() == b"a"
    assert connection.receive() is None


@pytest.mark.parametrize("sent", [b"\x05", b"\x05\x00\x00\x00", b"\x05\x00\x00\x00abc"])
def test_a_close_within_a_frame_is_refused(pair, sent: bytes) -> None:
    connection, peer = pair
    peer.sendall(sent)
    peer.close()
    with pytest.raises(ProtocolError, match=r"closed . bytes before the end of a frame"):
        connection.receive()


@pytest.mark.parametrize("length", [0, 4 * 1024 * 1024 + 1, 2**32 - 1])
def test_an_impossible_length_is_refused_before_the_payload_comes(pair, length: int) -> None:
    connection, peer = pair
    peer.sendall(struct.pack("<I", length))
    with pytest.raises(ProtocolError, match=rf"frame of {length} bytes .* 1 to 4194304"):
        connection.receive()


@pytest.mark.parametrize("receive", [FrameConnection.receive, FrameConnection.receive_now])
def test_the_limit_holds_for_a_frame_that_comes_whole(pair, receive) -> None:
    connection, peer = pair
    connection.max_received_bytes = 3
    peer.sendall(b"\x03\x00\x00\x00abc")
    assert receive(connection) == b"abc"
    peer.sendall(b"\x04\x00\x00\x00abcd")
    with pytest.raises(ProtocolError, match=r"frame of 4 bytes .* 1 to 3 are allowed"):
        receive(connection)


@pytest.mark.parametrize("sent", [b"\x05\x00", b"\x05\x00\x00\x00abc"])
def test_a_frame_that_stalls_is_refused(pair, sent: bytes) -> None:
    connection, peer = pair
    peer.sendall(sent)
    with pytest.raises(ProtocolError, match=r"bytes of a frame did not arrive within 0\.2 s"):
        connection.receive()


def test_silence_is_a_timeout_only_when_asked_for() -> None:
    ours, theirs = socket.socketpair()
    connection = FrameConnection(ours)
    with pytest.raises(TimeoutError):
        connection.receive(timeout_s=0.01)
    theirs.sendall(b"\x01\x00\x00\x00a")
    assert connection.receive() == b"a"
    connection.close()
    theirs.close()


def test_a_peer_that_does_not_read_does_not_hold_the_sender(pair) -> None:
    connection, _ = pair
    with pytest.raises(TimeoutError):
        connection.send(bytes(4 * 1024 * 1024))


@pytest.mark.parametrize("size", [0, 4 * 1024 * 1024 + 1])
def test_a_payload_that_no_frame_holds_is_not_sent(pair, size: int) -> None:
    connection, _ = pair
    with pytest.raises(ValueError, match=f"holds 1 to 4194304 bytes, this one has {size}"):
        connection.send(bytes(size))


def test_sending_to_a_peer_that_has_gone_is_an_os_error(pair) -> None:
    connection, peer = pair
    peer.close()
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the operating system
        connection.send(b"a")


def test_closing_twice_is_allowed_and_tells_the_peer(pair) -> None:
    connection, peer = pair
    connection.close()
    connection.close()
    assert connection.fileno() == -1
    assert peer.recv(1) == b""


def test_a_tcp_connection_answers_at_once_and_notices_dead_peers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    connection = FrameConnection(client)
    assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
    connection.close()
    server.close()


def test_without_waiting_nothing_is_returned_until_a_frame_is_whole(pair) -> None:
    connection, peer = pair
    for sent in (b"\x03", b"\x00\x00\x00", b"ab"):
        peer.sendall(sent)
        assert connection.receive_now() is None
    assert not connection.has_message
    peer.sendall(b"c")
    assert connection.receive_now() == b"abc"
    assert connection.receive_now() is None


def test_without_waiting_frames_that_came_together_are_announced_one_by_one(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a\x02\x00\x00\x00bc\x01\x00")
    assert connection.receive_now() == b"a"
    assert connection.has_message
    assert connection.receive_now() == b"bc"
    assert not connection.has_message
    peer.sendall(b"\x00\x00d")
    assert connection.receive_now() == b"d"


def test_without_waiting_a_close_between_frames_is_the_end(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a")
    peer.close()
    assert connection.receive_now() == b"a"
    with pytest.raises(PeerClosed):
        connection.receive_now()


@pytest.mark.parametrize("sent", [b"\x05", b"\x05\x00\x00\x00", b"\x05\x00\x00\x00abc"])
def test_without_waiting_a_close_within_a_frame_is_refused(pair, sent: bytes) -> None:
    connection, peer = pair
    peer.sendall(sent)
    assert connection.receive_now() is None
    peer.close()
    with pytest.raises(ProtocolError, match=r"closed . bytes before the end of a frame"):
        connection.receive_now()


@pytest.mark.parametrize("length", [0, 4 * 1024 * 1024 + 1, 2**32 - 1])
def test_without_waiting_an_impossible_length_is_refused_at_once(pair, length: int) -> None:
    connection, peer = pair
    peer.sendall(struct.pack("<I", length))
    with pytest.raises(ProtocolError, match=rf"frame of {length} bytes .* 1 to 4194304"):
        connection.receive_now()


@pytest.mark.parametrize("sent", [b"\x05\x00", b"\x05\x00\x00\x00abc"])
def test_without_waiting_a_frame_that_stalls_is_overdue(pair, sent: bytes) -> None:
    connection, peer = pair
    connection.require_progress(time.monotonic() + 100)
    peer.sendall(sent)
    assert connection.receive_now() is None
    connection.require_progress(time.monotonic())
    with pytest.raises(ProtocolError, match=r"bytes of a frame did not arrive within 0\.2 s"):
        connection.require_progress(time.monotonic() + 1)


def test_the_time_of_a_frame_begins_with_its_own_first_byte(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x05\x00\x00")
    assert connection.receive_now() is None
    began = time.monotonic()
    peer.sendall(b"\x00abcde\x01\x00")
    assert connection.receive_now() == b"abcde"
    connection.require_progress(began + 0.2)


def test_a_whole_frame_that_is_not_looked_at_is_never_overdue(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a\x01\x00\x00\x00b")
    assert connection.receive_now() == b"a"
    connection.require_progress(time.monotonic() + 100)
    assert connection.receive_now() == b"b"


def test_without_waiting_bytes_that_the_peer_does_not_take_are_kept_and_flushed(pair) -> None:
    connection, peer = pair
    payload = bytes(range(256)) * 8 * 1024
    connection.send_now(payload)
    connection.send_now(b"z")
    assert connection.is_unsent
    with pytest.raises(TimeoutError, match=r"has not taken \d+ bytes of a frame within 0\.2 s"):
        connection.require_progress(time.monotonic() + 1)
    received = bytearray()
    while len(received) < len(payload) + 9:
        connection.flush()
        while select.select([peer], [], [], 0)[0]:
            received += peer.recv(1024 * 1024)
    assert not connection.is_unsent
    assert received == struct.pack("<I", len(payload)) + payload + b"\x01\x00\x00\x00z"
    connection.require_progress(time.monotonic() + 100)


def test_a_frame_is_not_overdue_while_an_answer_waits_and_nothing_is_read(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x02\x00\x00\x00a")
    assert connection.receive_now() is None
    connection.send_now(bytes(2 * 1024 * 1024))
    with pytest.raises(TimeoutError, match="has not taken"):
        connection.require_progress(time.monotonic() + 1)
    began = time.monotonic()
    while connection.is_unsent:
        connection.flush()
        while select.select([peer], [], [], 0)[0]:
            peer.recv(1024 * 1024)
    connection.require_progress(began + 0.2)
    with pytest.raises(ProtocolError, match="did not arrive"):
        connection.require_progress(time.monotonic() + 1)


def test_a_whole_frame_that_waits_to_be_taken_is_not_overdue(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x01\x00\x00\x00a\x02\x00\x00\x00bc")
    assert connection.receive_now() == b"a"
    connection.require_progress(time.monotonic() + 100)
    assert connection.receive_now() == b"bc"


def test_a_waiting_receive_goes_on_where_a_receive_without_waiting_stopped(pair) -> None:
    connection, peer = pair
    peer.sendall(b"\x02\x00\x00\x00a")
    assert connection.receive_now() is None
    peer.sendall(b"b")
    assert connection.receive() == b"ab"


CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (CLIENT_HELLO, "TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", r"HTTP/2 \(gRPC\)"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    ],
)
def test_a_peer_that_speaks_another_protocol_is_refused_by_name(sent: bytes, name: str) -> None:
    for receive in (FrameConnection.receive, FrameConnection.receive_now):
        ours, theirs = socket.socketpair()
        connection = FrameConnection(ours)
        theirs.sendall(sent)
        with pytest.raises(ProtocolError, match=f"the peer speaks {name} instead of RLX"):
            receive(connection)
        connection.close()
        theirs.close()


def test_tls_that_comes_byte_by_byte_is_refused_by_name() -> None:
    ours, theirs = socket.socketpair()
    connection = FrameConnection(ours)
    for byte in CLIENT_HELLO[:5]:
        theirs.sendall(bytes([byte]))
        assert connection.receive_now() is None
    theirs.sendall(CLIENT_HELLO[5:6])
    with pytest.raises(ProtocolError, match="the peer speaks TLS"):
        connection.receive_now()
    connection.close()
    theirs.close()


def test_after_the_first_frame_nothing_is_taken_for_another_protocol() -> None:
    """A frame of 66,326 bytes may begin as TLS does, where its second byte is 1."""
    payload = b"\x03\x01" + bytes(0x10316 - 2)
    frame = struct.pack("<I", len(payload)) + payload
    for pieces in ((b"\1\0\0\0[", frame), (b"\1\0\0\0[" + frame,)):
        ours, theirs = socket.socketpair()
        connection = FrameConnection(ours)
        sender = threading.Thread(target=lambda p=pieces, t=theirs: [t.sendall(q) for q in p])
        sender.start()
        assert connection.receive() == b"["
        assert connection.receive() == payload
        sender.join()
        connection.close()
        theirs.close()
