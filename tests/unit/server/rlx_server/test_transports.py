"""A worker serves whatever carries messages: frames over sockets, and messages in memory."""

import socket

import pytest
from memory_connection import memory_pair
from served_worker import BinaryClient, encoded, received

from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import Hello, Metric
from relaax.steps import START, TERMINATED


def over_frames():
    return tuple(FrameConnection(sock) for sock in socket.socketpair())


@pytest.fixture(name="joined", params=[over_frames, memory_pair])
def _joined(request, serve):
    """A worker, and the client's end of a connection that was opened elsewhere."""
    ours, theirs = request.param()
    served = serve()
    served.worker.add(theirs, "a test")
    ours.send(binary.encode_hello(Hello("", "", 2)))
    binary.decode_welcome(received(served, ours))
    yield served, ours
    ours.close()


def ask(served, client, *report):
    client.send(encoded(*report))
    return binary.decode_answers(received(served, client))


def test_an_episode_is_played(joined):
    assert ask(*joined, [0, 1], [START, START], [0, 0], [5, 6]).actions.tolist() == [[0, 5], [1, 6]]
    assert ask(*joined, [1], [0], [2], [7]).actions.tolist() == [[1, 7]]
    assert ask(*joined, [1], [TERMINATED], [3]).scores.tolist() == [5]


def test_messages_that_wait_together_are_all_answered(joined):
    served, client = joined
    for step in range(4):
        client.send(encoded([0], [START], [0], [step]))
        client.send(binary.encode_metric(Metric("speed", step)))
    for step in range(4):
        assert binary.decode_answers(received(served, client)).actions.tolist() == [[0, step]]
    served.turn_until(lambda: served.stored.of("client/speed") == [0, 1, 2, 3])


def test_it_is_answered_together_with_connections_of_another_kind(joined, oracle):
    served, client = joined
    other = BinaryClient(served, environments=3)
    client.send(encoded([0], [START], [0], [1]))
    other.tell([0, 1, 2], [START] * 3, [0] * 3, [2, 3, 4])
    served.turn()
    assert oracle.sizes == [4]
    assert binary.decode_answers(received(served, client)).actions.tolist() == [[0, 1]]
    assert other.answer().actions[:, 1].tolist() == [2, 3, 4]


def test_a_client_that_closes_is_forgotten(joined, oracle):
    served, client = joined
    client.close()
    served.turn_until(lambda: served.load <= 0)
    assert oracle.slots == set()


def test_a_fault_ends_the_connection_with_its_reason(joined):
    served, client = joined
    client.send(encoded([0], [0], [1], [1]))
    with pytest.raises(binary.Error, match="no episode is going on in environment 0"):
        binary.raise_if_error(received(served, client))
    assert received(served, client) is None
