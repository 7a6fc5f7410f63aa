"""What every ``MessageConnection`` promises: the one over a socket, and the one in memory."""

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from memory_connection import memory_pair

from relaax.protocol import FrameConnection, MessageConnection, PeerClosed

Pair = tuple[MessageConnection, MessageConnection]

MOST_BYTES = 1024 * 1024
SEND_TIMEOUT_S = 0.2


def frame_pair() -> Pair:
    left, right = socket.socketpair()
    return (
        FrameConnection(left, MOST_BYTES, SEND_TIMEOUT_S),
        FrameConnection(right, MOST_BYTES, SEND_TIMEOUT_S),
    )


@pytest.fixture(
    params=[frame_pair, lambda: memory_pair(MOST_BYTES, SEND_TIMEOUT_S)], ids=["frames", "memory"]
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    make: Callable[[], Pair] = request.param
    left, right = make()
    with contextlib.closing(left), contextlib.closing(right):
        yield left, right


def is_readable(connection: MessageConnection) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def is_writable(connection: MessageConnection) -> bool:
    return bool(select.select([], [connection], [], 0)[1])


def messages_there(connection: MessageConnection) -> list[bytes]:
    """All messages that have come, taken as an event loop takes them."""
    found = []
    while connection.has_message or is_readable(connection):
        message = connection.receive_now()
        if message is not None:
            found.append(bytes(message))
    return found


def fill(connection: MessageConnection) -> list[bytes]:
    """Send until the peer takes no more; return what was sent."""
    sent = []
    while not connection.is_unsent:
        sent.append(len(sent).to_bytes(4, "little") * 4096)
        connection.send_now(sent[-1])
    return sent


def test_messages_come_whole_and_in_their_order_in_both_directions(pair) -> None:
    left, right = pair
    for payload in (b"a", b"bc", bytes(range(256)) * 64):
        left.send(payload)
        right.send(payload + b"!")
    assert [right.receive() for _ in range(3)] == [b"a", b"bc", bytes(range(256)) * 64]
    assert [left.receive() for _ in range(3)] == [b"a!", b"bc!", bytes(range(256)) * 64 + b"!"]


def test_receive_waits_for_a_message(pair) -> None:
    left, right = pair
    answering = threading.Thread(target=lambda: right.send((right.receive() or b"") + b"!"))
    answering.start()
    left.send(b"a")
    assert left.receive(30) == b"a!"
    answering.join()


def test_the_largest_message_passes_while_the_peer_reads(pair) -> None:
    left, right = pair
    received: list[bytes | None] = []
    reading = threading.Thread(target=lambda: received.append(right.receive()))
    reading.start()
    left.send(bytes(MOST_BYTES))
    reading.join()
    assert received == [bytes(MOST_BYTES)]


def test_silence_is_a_timeout_and_no_end(pair) -> None:
    left, right = pair
    with pytest.raises(TimeoutError):
        left.receive(0.01)
    right.send(b"a")
    assert left.receive() == b"a"


def test_without_waiting_there_is_nothing_until_something_comes(pair) -> None:
    left, right = pair
    assert left.receive_now() is None
    assert not is_readable(left)
    right.send_now(b"a")
    assert is_readable(left)
    assert left.receive_now() == b"a"
    assert left.receive_now() is None


def test_messages_that_came_together_are_all_found_by_polling(pair) -> None:
    left, right = pair
    for payload in (b"a", b"bc", b"d"):
        right.send_now(payload)
    assert messages_there(left) == [b"a", b"bc", b"d"]
    assert messages_there(left) == []


def test_messages_sent_before_a_close_arrive_and_then_the_end(pair) -> None:
    left, right = pair
    right.send(b"a")
    right.close()
    assert left.receive() == b"a"
    assert left.receive() is None
    assert is_readable(left)
    with pytest.raises(PeerClosed):
        left.receive_now()


@pytest.mark.parametrize("size", [0, MOST_BYTES + 1])
def test_a_message_that_is_empty_or_too_large_is_not_sent(pair, size: int) -> None:
    left, right = pair
    for send in (left.send, left.send_now):
        with pytest.raises(ValueError, match=f"holds 1 to {MOST_BYTES} bytes, this one has {size}"):
            send(bytes(size))
    left.send(b"a")
    assert right.receive() == b"a"


def test_sending_to_a_peer_that_has_closed_is_an_os_error(pair) -> None:
    left, right = pair
    right.close()
    for send in (left.send, left.send_now):
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on the operating system
            send(b"a")


def test_bytes_that_the_peer_does_not_take_are_kept_and_flushed(pair) -> None:
    left, right = pair
    sent = fill(left)
    left.send_now(b"z")
    assert not is_writable(left)
    received = []
    while left.is_unsent or is_readable(right):
        received += messages_there(right)
        left.flush()
    assert received == [*sent, b"z"]
    assert is_writable(left)


def test_a_peer_that_takes_nothing_is_a_timeout(pair) -> None:
    left, _ = pair
    fill(left)
    left.require_progress(time.monotonic())
    with pytest.raises(TimeoutError, match=r"has not taken .* within 0\.2 s"):
        left.require_progress(time.monotonic() + 1)
    with pytest.raises(TimeoutError):
        left.send(b"a")


def test_a_quiet_connection_is_never_overdue(pair) -> None:
    left, right = pair
    right.send(b"a")
    assert left.receive_now() == b"a"
    left.require_progress(time.monotonic() + 1000)


def test_closing_twice_is_allowed_and_leaves_no_descriptor(pair) -> None:
    left, right = pair
    left.close()
    left.close()
    assert left.fileno() == -1
    assert right.receive() is None
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the operating system
        left.receive()
