"""Clients that do not read, or whose messages do not come whole: no other one waits for them."""

import contextlib
import logging
import struct
import threading

import numpy as np
import pytest
from json_requests import Act, encode_request
from served_worker import BinaryClient, JsonClient, Oracle, encoded

from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Hello, Metric
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.worker import loop
from relaax.steps import START, TERMINATED

#: So many environments that an answer to all is larger than a socket's buffer.
MANY = 20_000


@pytest.fixture(autouse=True)
def _often_swept(monkeypatch):
    monkeypatch.setattr(loop, "SWEEP_S", 0.01)


def framed(payload):
    return struct.pack("<I", len(payload)) + payload


def send_raw(client, data):
    """Send bytes as they are, over the socket that a client's connection owns."""
    client.connection.sock.sendall(data)


def start_all(client):
    """Begin an episode in all of a client's environments; do not read the answer."""
    count = client.environments
    client.tell(range(count), [START] * count, [0] * count, np.arange(count))


def is_closed(client):
    """Return whether the worker has closed a connection, all of which is read."""
    with contextlib.suppress(ProtocolError):
        while client.connection.receive(20) is not None:
            pass
    return True


def read_nothing(served):
    client = BinaryClient(served, environments=MANY)
    start_all(client)
    return client


def stop_in_a_frame(served):
    client = BinaryClient(served)
    send_raw(client, framed(encoded([0], [START], [0], [1]))[:-3])
    return client


def stop_in_a_header(served):
    client = BinaryClient(served)
    send_raw(client, b"\x20\0")
    return client


def stop_in_the_hello(served):
    client = JsonClient(served)
    send_raw(client, framed(binary.encode_hello(Hello("", "")))[:-3])
    return client


def say_nothing(served):
    return JsonClient(served)


SLOW = [read_nothing, stop_in_a_frame, stop_in_a_header, stop_in_the_hello, say_nothing]


@pytest.mark.parametrize("misbehave", SLOW)
def test_a_client_that_stops_delays_no_other(serve, misbehave):
    """The others get their answers while it is still served: nothing waits for its deadline."""
    served = serve(runs=True, message_timeout_s=600.0)
    good = BinaryClient(served)
    slow = [misbehave(served) for _ in range(3)]
    for step in range(50):
        assert good.ask([0], [START], [0], [step]).actions[0, 1] == step
    for client in slow:
        client.connection.receive_now()  # raises if the worker had closed it


@pytest.mark.parametrize("misbehave", SLOW[1:])
def test_two_hundred_clients_that_stop_delay_no_other(serve, misbehave):
    served = serve(runs=True, message_timeout_s=600.0)
    for _ in range(200):
        misbehave(served)
    good = BinaryClient(served)
    for step in range(50):
        assert good.ask([0], [START], [0], [step]).actions[0, 1] == step


def test_a_client_that_sends_a_byte_at_a_time_is_answered_and_delays_no_other(serve):
    served = serve(runs=True)
    slow, good = BinaryClient(served), BinaryClient(served)
    for byte in framed(encoded([0], [START], [0], [7])):
        send_raw(slow, bytes([byte]))
        assert good.ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]
    assert slow.answer().actions.tolist() == [[0, 7]]


def test_a_client_that_sends_a_byte_at_a_time_for_too_long_is_closed(serve):
    served = serve(runs=True, message_timeout_s=0.2)
    slow, good = BinaryClient(served), BinaryClient(served)
    send_raw(slow, struct.pack("<I", 2**20))
    with pytest.raises(OSError):  # noqa: PT011, PT012 - which one depends on the system
        while True:
            send_raw(slow, b"x")
            assert good.ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]


class Waiting(Oracle):
    """Takes long for every evaluation, or every other one, as one that waits for a learner."""

    def __init__(self, every):
        super().__init__()
        self.every = every

    def act(self, transitions, states, finals):
        if len(self.sizes) % self.every == 0:
            threading.Event().wait(0.05)
        return super().act(transitions, states, finals)


@pytest.mark.parametrize("every", [1, 2])
def test_a_client_that_stops_is_closed_where_acting_takes_long(serve, monkeypatch, every):
    monkeypatch.setattr(loop, "LONG_TURN_S", 0.03)
    served = serve(Waiting(every), runs=True, message_timeout_s=0.2)
    good, slow = BinaryClient(served), stop_in_a_header(served)
    for _ in range(1000):
        goodbye = slow.connection.receive_now()
        if goodbye is not None:
            break
        assert good.ask([0], [START], [0], [1]).actions.tolist() == [[0, 1]]
    assert b"2 bytes of a frame did not arrive within 0.2 s" in bytes(goodbye)


def test_a_message_that_still_comes_is_not_overdue_where_acting_takes_long(serve, monkeypatch):
    """What a client sends lies there until the worker's next turn, and does not count as late."""
    monkeypatch.setattr(loop, "LONG_TURN_S", 0.03)
    served = serve(Waiting(1), message_timeout_s=0.2)
    good, large = BinaryClient(served), BinaryClient(served)
    message = framed(encoded([0], [START], [0], [7]))
    for byte in message[:10]:  # each turn finds a byte, and a step that takes long
        send_raw(large, bytes([byte]))
        good.tell([0], [START], [0], [1])
        served.turn()
        assert good.answer().actions.tolist() == [[0, 1]]
    send_raw(large, message[10:])
    served.turn()
    assert large.answer().actions.tolist() == [[1, 7]]


@pytest.mark.parametrize("misbehave", [stop_in_a_frame, stop_in_a_header])
def test_a_frame_that_does_not_come_whole_ends_its_connection_with_the_reason(serve, misbehave):
    served = serve(runs=True, message_timeout_s=0.1)
    slow, good = misbehave(served), BinaryClient(served)
    with pytest.raises(binary.Error, match=r"bytes of a frame did not arrive within 0.1 s") as said:
        slow.answer()
    assert said.value.code == ErrorCode.PROTOCOL
    assert slow.receive() is None
    assert good.ask([0], [START], [0], [1]).actions[0, 1] == 1
    assert served.load == 1


def test_a_hello_that_does_not_come_whole_ends_its_connection(serve, caplog):
    served = serve(runs=True, guard=Guard(tokens=None, hello_timeout_s=0.1))
    assert is_closed(stop_in_the_hello(served))
    assert "it has not begun within 0.1 s (--hello-timeout)" in caplog.text


def test_a_client_that_reads_nothing_is_closed_after_its_time_with_the_reason(serve, caplog):
    caplog.set_level(logging.INFO, "relaax")
    served = serve(runs=True, message_timeout_s=0.1)
    slow, good = read_nothing(served), BinaryClient(served)
    start = 0
    while "has not taken" not in caplog.text:
        start += 1
        assert good.ask([0], [START], [0], [start]).actions[0, 1] == start
    assert is_closed(slow)
    assert "lost the connection from a test: the peer has not taken" in caplog.text
    assert "bytes of a frame within 0.1 s" in caplog.text
    good.ask([0], [START], [0], [0])
    assert served.load == 1


def test_a_client_that_does_not_read_and_sends_on_is_closed_for_not_reading(serve, caplog):
    """Its next message, which waits for the answer to be taken, is not what is overdue."""
    caplog.set_level(logging.INFO, "relaax")
    served = serve(message_timeout_s=0.1)
    slow = BinaryClient(served, environments=MANY)
    count = slow.environments
    both = framed(encoded(range(count), [START] * count, [0] * count, np.arange(count)))
    both += framed(encoded([0], [0], [0], [1]))
    send_slowly(served, slow, both)
    served.turn_until(lambda: served.turn() or served.load == 0)
    assert "the peer has not taken" in caplog.text
    assert "did not arrive" not in caplog.text


def send_slowly(served, client, data):
    """Send bytes that no socket's buffer holds, while the worker takes turns."""
    for begin in range(0, len(data), 50_000):
        send_raw(client, data[begin : begin + 50_000])
        served.turn()


def test_a_client_that_says_nothing_is_not_in_the_middle_of_a_message(serve):
    """There is no limit on the time before a message, nor on the time between two."""
    served = serve(runs=True, message_timeout_s=0.05)
    silent, idle, good = JsonClient(served), BinaryClient(served), BinaryClient(served)
    late = stop_in_a_frame(served)
    good.ask([0], [START], [0], [1])
    assert is_closed(late)  # so long that a message would be overdue
    silent.tell(Act([4]))
    assert silent.action()[1] == 4
    assert idle.ask([0], [START], [0], [5]).actions[0, 1] == 5


class TestAnAnswerThatDoesNotFitAtOnce:
    def test_it_is_delivered_whole_when_the_client_reads_again(self, serve):
        served = serve()
        client = BinaryClient(served, environments=MANY)
        start_all(client)
        served.turn(20)
        answer = client.answer()
        assert answer.environments.tolist() == list(range(MANY))
        assert answer.actions[:, 1].tolist() == list(range(MANY))

    def test_the_next_message_is_handled_only_after_it(self, serve):
        served = serve()
        client = BinaryClient(served, environments=MANY)
        start_all(client)
        client.connection.send(binary.encode_metric(Metric("speed", 1.0)))
        served.turn(20)
        assert served.stored.of("client/speed") == []
        client.answer()
        served.turn_until(lambda: served.stored.of("client/speed"))
        assert client.ask([0], [0], [1], [3]).actions[0, 1] == 3

    def test_the_next_message_is_handled_after_it_where_both_came_together(self, serve):
        """The next one has been read, so that nothing but the connection knows of it."""
        served = serve()
        client = BinaryClient(served, environments=MANY)
        count = client.environments
        both = framed(encoded(range(count), [START] * count, [0] * count, np.arange(count)))
        both += framed(binary.encode_metric(Metric("speed", 1.0)))
        both += framed(encoded([0], [0], [0], [5]))
        send_slowly(served, client, both)
        served.turn(20)
        assert served.stored.of("client/speed") == []
        assert len(client.answer().actions) == MANY
        assert client.answer().actions[0, 1] == 5
        assert served.stored.of("client/speed") == [1.0]

    def test_the_goodbye_is_sent_after_it(self, serve):
        served = serve(timeout_s=0.0)
        client = BinaryClient(served, environments=MANY)
        start_all(client)
        client.answer()
        client.tell(range(MANY), [TERMINATED | START] * MANY, [2] * MANY, np.arange(MANY))
        served.turn(20)
        answer = client.answer()
        assert answer.scores.tolist() == [2] * MANY
        assert len(answer.actions) == MANY
        with pytest.raises(binary.Error, match="connect again") as said:
            client.answer()
        assert said.value.code == ErrorCode.GO_ELSEWHERE
        assert client.receive() is None
        assert served.load == 0


class TestMessagesThatArriveTogether:
    """The poll shows the first of them alone: the others have been read with it."""

    def test_all_are_answered(self, serve):
        served = serve()
        client = BinaryClient(served)
        messages = [encoded([0], [START], [0], [step]) for step in range(5)]
        send_raw(client, b"".join(framed(message) for message in messages))
        for step in range(5):
            assert client.answer().actions[0, 1] == step

    def test_they_are_answered_one_a_turn(self, serve, oracle):
        served = serve()
        client = BinaryClient(served)
        send_raw(client, framed(encoded([0], [START], [0], [1])) * 3)
        for turn in range(3):
            served.turn()
            assert len(oracle.sizes) == turn + 1

    def test_metrics_between_them_hold_nothing_up(self, serve):
        served = serve()
        client = BinaryClient(served)
        metric = framed(binary.encode_metric(Metric("speed", 1.0)))
        send_raw(client, metric + framed(encoded([0], [START], [0], [2])) + metric)
        assert client.answer().actions[0, 1] == 2
        served.turn_until(lambda: served.stored.of("client/speed") == [1.0, 1.0])

    def test_a_hello_may_be_followed_at_once(self, serve):
        served = serve()
        client = JsonClient(served)
        hello = framed(binary.encode_hello(Hello("", "")))
        send_raw(client, hello + framed(encoded([0], [START], [0], [3])))
        binary.decode_welcome(client.receive())
        assert binary.decode_answers(client.receive()).actions[0, 1] == 3

    def test_they_are_answered_in_version_1(self, serve):
        served = serve()
        client = JsonClient(served)
        requests = [Act([1]), Metric("speed", 1.0), Act([2]), Act([3])]
        send_raw(client, b"".join(framed(encode_request(request)) for request in requests))
        assert [client.action()[1] for _ in range(3)] == [1, 2, 3]

    def test_the_beginning_of_one_more_waits_for_its_rest(self, serve):
        served = serve()
        client = BinaryClient(served)
        message = framed(encoded([0], [START], [0], [1]))
        send_raw(client, message * 2 + message[:10])
        assert [client.answer().actions[0, 1] for _ in range(2)] == [1, 1]
        served.turn(5)
        send_raw(client, message[10:])
        assert client.answer().actions[0, 1] == 1

    def test_the_end_of_the_connection_may_follow_at_once(self, serve):
        served = serve()
        client = BinaryClient(served)
        send_raw(client, framed(encoded([0], [START], [0], [1])) * 3)
        client.connection.sock.shutdown(1)
        assert [client.answer().actions[0, 1] for _ in range(3)] == [1, 1, 1]
        assert client.receive() is None

    def test_nonsense_behind_a_message_ends_the_connection_after_its_answer(self, serve):
        served = serve()
        client = BinaryClient(served)
        send_raw(client, framed(encoded([0], [START], [0], [1])) + struct.pack("<I", 2**31))
        assert client.answer().actions[0, 1] == 1
        with pytest.raises(binary.Error, match="a frame of 2147483648 bytes was announced"):
            client.answer()
