"""Clients speak over what a transport opens: TCP, or anything that carries messages."""

import socket
import threading
import time

import numpy as np
import pytest
from memory_connection import MemoryTransport

from relaax.address import Address
from relaax.client import Client, Failure, VectorClient
from relaax.client.connector import Connector, RetryPolicy
from relaax.client.transport import TcpTransport
from relaax.protocol.json import ServerCodec
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

STATES = np.zeros((2, 1), np.float32)


class Opened(TcpTransport):
    """Keeps the connections that were opened over TCP."""

    def __init__(self):
        super().__init__()
        self.connections = []

    def connect(self, address, timeout_s):
        self.connections.append(super().connect(address, timeout_s))
        return self.connections[-1]


@pytest.fixture
def memory(recorder, monkeypatch):
    """A transport to the recorder; no socket can be connected meanwhile."""
    monkeypatch.setattr(socket, "create_connection", None)
    with MemoryTransport(recorder.talk) as transport:
        yield transport


class TestInMemory:
    def test_an_episode_of_one_environment_is_played(self, memory, recorder):
        with Client("simulated:7001", transport=memory) as client:
            assert client.init([0.5]) == 1
            assert client.send(2.0, [1.0]) == 1
            client.metrics().scalar("speed", 3.0)
            assert client.reset(4.0) == 1.0
        assert recorder.told == [
            ([START], [0], [0.5], []),
            ([0], [2], [1], []),
            ([TERMINATED], [4], [], []),
        ]
        assert [metric.name for metric in recorder.metrics] == ["speed"]

    def test_many_environments_are_too(self, memory, recorder):
        with VectorClient("simulated:7001", 2, transport=memory) as client:
            client.init(STATES)
            assert client.send(np.ones(2), STATES).tolist() == [1, 1]
            client.send(np.ones(2), STATES, None, np.array([True, False]), STATES[:1])
            alone = Steps(np.array([1]), np.zeros(1, np.uint8), np.ones(1), STATES[:1], ())
            assert client.exchange(alone).environments.tolist() == [1]
        flags = [told[0] for told in recorder.told]
        assert flags == [[START] * 2, [0, 0], [TRUNCATED | FINAL | START, 0], [0]]

    def test_version_one_is_spoken_too(self):
        codec = ServerCodec()

        def serve(number, connection):
            while (payload := connection.receive()) is not None:
                steps = codec.decode(payload)
                connection.send(codec.encode([5], [] if steps.observations else [2.5]))

        with (
            MemoryTransport(serve) as transport,
            Client("simulated:7001", protocol=1, transport=transport) as client,
        ):
            assert client.init([0.0]) == 5
            assert client.send(1.0, [0.0]) == 5
            assert client.reset(1.5) == 2.5

    def test_the_transport_is_asked_for_the_clients_address_in_the_clients_time(self, memory):
        with Client("simulated:7001", connect_timeout_s=3.0, transport=memory) as client:
            assert memory.requests == []
            client.init([0.0])
            client.init([0.0])
        assert memory.requests == [(Address("simulated", 7001), 3.0)]
        assert memory.opened[0].fileno() == -1

    def test_after_a_loss_it_is_asked_again(self, memory, recorder):
        pauses = []
        with Client("simulated:7001", transport=memory, wait=pauses.append) as client:
            client.init([0.0])
            memory.opened[0].close()
            with pytest.raises(Failure, match="lost the RLX server at simulated:7001"):
                client.send(1.0, [0.0])
            assert client.init([0.0]) == 1
        assert len(memory.requests) == 2
        assert len(pauses) == 1

    def test_an_answer_that_is_late_is_a_failure_and_closes(self, memory, recorder):
        may_answer = threading.Event()

        def answer_later(number, steps):
            may_answer.wait(30)

        recorder.reply = answer_later
        with Client("simulated:7001", timeout_s=0.01, transport=memory) as client:
            with pytest.raises(Failure, match="lost the RLX server at simulated:7001: timed out"):
                client.init([0.0])
            may_answer.set()
        assert memory.opened[0].fileno() == -1


def test_a_connection_that_a_transport_cannot_open_is_a_failure():
    class Broken:
        def connect(self, address, timeout_s):
            raise OSError("no certificate")

    with pytest.raises(Failure, match="cannot connect to the RLX server at far:1: no certificate"):
        Client("far:1", transport=Broken()).init([0.0])


class TestTcp:
    def test_a_connection_stays_until_it_is_closed(self, server):
        transport, retry = Opened(), RetryPolicy(None, time.sleep)
        connector = Connector(Address.parse(server.url), transport, 10, 10, retry, None)
        connection = connector.open(None)
        assert connector.open(None) is connection
        connector.close()
        assert not connection.is_open
        assert [opened.fileno() for opened in transport.connections] == [-1]

    def test_a_socket_that_cannot_be_prepared_is_closed(self, server, monkeypatch):
        refused = []

        def refuse(sock):
            refused.append(sock)
            raise OSError("the peer has closed")

        monkeypatch.setattr("relaax.client.transport.FrameConnection", refuse)
        with pytest.raises(Failure, match=r"cannot connect .*: the peer has closed"):
            Client(server.url).init([0.0])
        assert [sock.fileno() for sock in refused] == [-1]
