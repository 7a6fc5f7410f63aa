"""When a client pauses, tries again, gives up, or changes to version 1."""

import logging
import socket
import threading

import numpy as np
import pytest

from relaax.address import Address
from relaax.client import Backoff, Client, Failure, TcpTransport, VectorClient
from relaax.client.connector import RetryPolicy
from relaax.client.server_connection import ServerConnection
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.steps import START

BROKEN = binary.encode_error(ErrorCode.SERVER, "the network is gone")
OVER = binary.encode_error(ErrorCode.TRAINING_IS_OVER, "well done")
FAILED = binary.encode_error(ErrorCode.ALGORITHM, "well done, but for a mistake")
STATE = np.zeros(1, np.float32)


def fails_after_the_start(number, steps):
    return None if steps.flags[0] & START else BROKEN


def try_an_episode(client):
    """Start an episode and lose it at its first step."""
    client.init(STATE)
    with pytest.raises(Failure, match="the network is gone"):
        client.send(1.0, STATE)


class TestAServerThatStarts:
    """``relaax-train`` starts servers and environments at once."""

    def test_it_is_waited_for_by_a_client_that_does_not_try_again(self, server, monkeypatch):
        monkeypatch.setenv("RELAAX_RUN", "a training")
        refused = [ConnectionRefusedError("nothing listens"), ConnectionRefusedError("not yet")]
        waited = []

        class Starting(TcpTransport):
            def connect(self, address, timeout_s):
                if refused:
                    raise refused.pop()
                return super().connect(address, timeout_s)

        with Client(server.url, transport=Starting(), wait=waited.append) as client:
            client.init(STATE)
        assert len(waited) == 2

    def test_it_is_not_where_nothing_starts_it(self, monkeypatch):
        monkeypatch.delenv("RELAAX_RUN", raising=False)
        with socket.socket() as unheard:
            unheard.bind(("localhost", 0))
            client = Client(f"localhost:{unheard.getsockname()[1]}")
            with pytest.raises(Failure, match="cannot connect"):
                client.init(STATE)


class TestPauses:
    def test_a_server_that_fails_right_after_the_start_is_tried_less_and_less_often(self, server):
        server.reply = fails_after_the_start
        pauses = []
        backoff = Backoff(attempts=4, jitter=0)
        with Client(server.url, reconnect=backoff, wait=pauses.append) as client:
            for _ in range(4):
                try_an_episode(client)
            with pytest.raises(Failure, match=r"gave up after 4 attempts.*the network is gone"):
                client.init(STATE)
        assert pauses == [0.5, 1.0, 2.0]
        assert server.accepted == 4

    def test_many_environments_do_the_same(self, server):
        server.reply = fails_after_the_start
        pauses = []
        backoff = Backoff(attempts=3, jitter=0)
        with VectorClient(server.url, 2, reconnect=backoff, wait=pauses.append) as client:
            states = np.zeros((2, 1))
            for _ in range(3):
                client.init(states)
                with pytest.raises(Failure):
                    client.send(np.ones(2), states)
            with pytest.raises(Failure, match="gave up after 3 attempts"):
                client.init(states)
        assert pauses == [0.5, 1.0]

    def test_the_end_of_an_episode_starts_the_count_anew(self, server):
        pauses = []
        backoff = Backoff(attempts=2, jitter=0)
        with Client(server.url, reconnect=backoff, wait=pauses.append) as client:
            for _ in range(5):
                server.reply = lambda number, steps: None
                client.init(STATE)
                client.reset(1.0)
                server.reply = fails_after_the_start
                try_an_episode(client)
        assert pauses == [0.5] * 4
        assert server.accepted == 5

    def test_without_a_backoff_there_is_a_pause_after_a_loss_too(self, server):
        server.reply = fails_after_the_start
        pauses = []
        with Client(server.url, wait=pauses.append) as client:
            for _ in range(3):
                try_an_episode(client)
        assert len(pauses) == 2

    def test_a_disconnected_client_connects_at_once(self, server):
        server.reply = fails_after_the_start
        pauses = []
        with Client(server.url, wait=pauses.append) as client:
            for _ in range(3):
                try_an_episode(client)
                client.disconnect()
        assert pauses == []

    def test_a_connection_that_lasted_is_no_failure_though_no_episode_ended(self, server):
        server.reply = fails_after_the_start
        pauses = []
        backoff = Backoff(initial_s=0, max_s=0, attempts=1)
        with Client(server.url, reconnect=backoff, wait=pauses.append) as client:
            for _ in range(4):
                try_an_episode(client)
        assert pauses == [0, 0, 0]

    def test_ctrl_c_while_a_client_waits_for_the_server_shows_no_failure(self, unused_url):
        def interrupt(_):
            raise KeyboardInterrupt

        client = Client(unused_url, reconnect=Backoff(), wait=interrupt)
        with client, pytest.raises(KeyboardInterrupt) as interrupted:
            client.init(STATE)
        assert interrupted.value.__context__ is None

    def test_waiting_after_a_loss_can_be_stopped_with_the_loss(self):
        retry = RetryPolicy(Backoff(initial_s=0, max_s=0), lambda _: True)
        with pytest.raises(Failure, match=r"^lost$"):
            retry.pause_after_loss(Failure("lost"))


class Warned(logging.Handler):
    """Knows when something was logged."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self.has_warned = threading.Event()

    def emit(self, record):
        self.texts.append(record.getMessage())
        self.has_warned.set()


class TestASilentServer:
    @pytest.fixture
    def warned(self):
        handler, log = Warned(), logging.getLogger("relaax.client.connector")
        log.addHandler(handler)
        yield handler
        log.removeHandler(handler)

    def test_that_it_does_not_answer_a_hello_is_logged(self, server, monkeypatch, warned):
        monkeypatch.setattr("relaax.client.connector.LONG_S", 0.01)
        server.greet = lambda number: None if warned.has_warned.wait(30) else BROKEN
        with Client(server.url) as client:
            assert client.init(STATE) == 1
        assert len(warned.texts) == 1
        assert "waits for its parameter server" in warned.texts[0]

    def test_a_hello_that_is_answered_in_time_is_not(self, server, warned):
        with Client(server.url) as client:
            assert client.init(STATE) == 1
        assert warned.texts == []


class TestTheServersReason:
    def test_a_refusal_at_the_start_is_not_repeated_without_connecting(self, server):
        refusal = binary.encode_error(ErrorCode.MISMATCH, "too few")
        server.greet = lambda number: refusal if number == 1 else None
        with Client(server.url) as client:
            with pytest.raises(Failure, match="too few"):
                client.init(STATE)
            assert client.init(STATE) == 1
        assert server.accepted == 2

    def test_a_refusal_of_the_first_state_is_not_repeated_either(self, server):
        refusal = binary.encode_error(ErrorCode.MISMATCH, "too few")
        server.reply = lambda number, steps: refusal if number == 1 else None
        with Client(server.url) as client:
            with pytest.raises(Failure, match="too few"):
                client.init(STATE)
            assert client.init(STATE) == 1

    @pytest.mark.parametrize(
        ("last", "code"),
        [(OVER, ErrorCode.TRAINING_IS_OVER), (FAILED, ErrorCode.ALGORITHM)],
        ids=["over", "failed"],
    )
    @pytest.mark.parametrize("reconnect", [None, Backoff()])
    def test_a_final_one_in_an_episode_is_raised_by_the_next_start_and_once(
        self, server, reconnect, last, code
    ):
        server.reply = lambda number, steps: last if len(server.steps) == 2 else None
        with Client(server.url, reconnect=reconnect) as client:
            client.init(STATE)
            for attempt in (lambda: client.send(1.0, STATE), lambda: client.init(STATE)):
                with pytest.raises(Failure, match="well done") as said:
                    attempt()
                assert said.value.code == code
            assert client.init(STATE) == 1

    def test_a_mistake_in_an_episode_does_not_spoil_the_next(self, server):
        refusal = binary.encode_error(ErrorCode.MISMATCH, "too few")
        server.reply = lambda number, steps: refusal if len(server.steps) == 2 else None
        with Client(server.url, wait=lambda _: None) as client:
            client.init(STATE)
            with pytest.raises(Failure, match="too few"):
                client.send(1.0, STATE)
            assert client.init(STATE) == 1

    def test_the_same_mistake_in_every_episode_is_not_made_for_ever(self, server):
        refusal = binary.encode_error(ErrorCode.MISMATCH, "too few")
        server.reply = lambda number, steps: None if steps.flags[0] & START else refusal
        backoff = Backoff(initial_s=0, max_s=0, attempts=3)
        with Client(server.url, reconnect=backoff) as client:
            for _ in range(3):
                client.init(STATE)
                with pytest.raises(Failure, match="too few"):
                    client.send(1.0, STATE)
            with pytest.raises(Failure, match=r"gave up after 3 attempts.*too few") as said:
                client.init(STATE)
        assert said.value.code == ErrorCode.MISMATCH
        assert server.accepted == 3

    def test_a_close_without_a_reason_points_at_the_log(self, server, close):
        server.reply = lambda number, steps: close if len(server.steps) == 2 else None
        with Client(server.url) as client:
            client.init(STATE)
            with pytest.raises(Failure, match="and gave no reason; its log may say why") as said:
                client.send(1.0, STATE)
        assert type(said.value) is Failure

    def test_it_is_not_lost_when_metrics_are_sent_to_the_closed_connection(self):
        ours, theirs = socket.socketpair()
        codec = binary.ClientCodec(1)
        connection = ServerConnection(FrameConnection(ours), Address("localhost", 1), codec, 10)
        FrameConnection(theirs).send(OVER)
        theirs.close()
        for _ in range(3):
            connection.metric("fuel", 1.0, None)
        with pytest.raises(Failure, match="well done"):
            connection.step_all(np.zeros(1), np.zeros((1, 1)))


@pytest.mark.parametrize("is_old", [False, True])
def test_a_close_at_the_hello_is_a_failure_that_is_tried_again(server, start_server, close, is_old):
    """A server of version 2 may have no room; one of version 1 closes always."""
    server.greet = lambda number: close if number == 1 else None
    pauses, url = [], start_server().url if is_old else server.url
    backoff = Backoff(attempts=2)
    with Client(url) as client, pytest.raises(Failure, match="at the hello: it has no room; or"):
        client.init(STATE)
    with Client(url, reconnect=backoff, wait=pauses.append) as client:
        if is_old:
            with pytest.raises(Failure, match=r"gave up after 2 .*version 1 alone .*protocol=1"):
                client.init(STATE)
        else:
            assert client.init(STATE) == 1
    assert len(pauses) == is_old


def test_nonsense_instead_of_a_welcome_is_a_failure_and_closes():
    """A frame that is none, which no decoder ever sees."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = threading.Event()

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"\0\0\0\0")
                while connection.recv(4096):
                    pass
                closed.set()

        thread = threading.Thread(target=serve)
        thread.start()
        client = Client(f"127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(Failure, match="broke the protocol: a frame of 0 bytes"):
            client.init(STATE)
        assert closed.wait(10)
        thread.join(10)
