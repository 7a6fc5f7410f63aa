"""Connections that come and go: what they held is free again, and a worker says why it goes."""

import contextlib
import gc
import os
import resource
import socket

import numpy as np
import pytest
from json_requests import Act, RewardAndAct
from served_worker import (
    STOPS,
    BinaryClient,
    ClientsEnd,
    JsonClient,
    StopOnDemand,
    Stub,
    encoded,
    settings,
)

from relaax.errors import BridgeError
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Hello
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.loop import Worker
from relaax.server.rlx_server.worker.stopping import Reason
from relaax.steps import START

MANY = 20_000


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def hello(environments=1):
    return binary.encode_hello(Hello("", "", environments))


def before_the_hello(served):
    return served.connect()


def within_the_hello(served):
    connection = served.connect()
    connection.sock.sendall(b"\x30\0\0\0" + hello()[:10])
    return connection


def before_the_welcome(served):
    connection = served.connect()
    connection.send(hello())
    return connection


def between_two_steps(served):
    client = BinaryClient(served, environments=3)
    client.ask([0, 1, 2], [START] * 3, [0] * 3, [1, 2, 3])
    return client.connection


def before_an_answer(served):
    connection = between_two_steps(served)
    connection.send(encoded([0], [0], [1], [1]))
    return connection


def with_messages_waiting(served):
    connection = between_two_steps(served)
    for _ in range(5):
        connection.send(encoded([0], [0], [1], [1]))
    served.turn()
    return connection


def within_a_step(served):
    connection = between_two_steps(served)
    connection.sock.sendall(b"\x30\0\0\0\x03")
    return connection


def within_an_answer(served):
    client = BinaryClient(served, environments=MANY)
    client.tell(range(MANY), [START] * MANY, [0] * MANY, np.zeros(MANY))
    served.turn(5)
    return client.connection


def in_version_1(served):
    client = JsonClient(served)
    client.tell(Act([1]))
    client.action()
    client.tell(RewardAndAct(1.0, [1]))
    return client.connection


MOMENTS = [
    before_the_hello, within_the_hello, before_the_welcome, between_two_steps, before_an_answer,
    with_messages_waiting, within_a_step, within_an_answer, in_version_1,
]  # fmt: skip


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("turns", [0, 1])
def test_a_client_that_closes_leaves_no_slot_taken_and_no_descriptor_open(
    serve, oracle, moment, turns
):
    served = serve()
    good = BinaryClient(served)
    gc.collect()  # what other tests have left open closes now, and not while this one counts
    before = descriptors()
    connection = moment(served)
    served.turn(turns)
    connection.close()
    served.turn_until(lambda: descriptors() == before and served.load == 1)
    assert oracle.slots == {0}
    assert good.ask([0], [START], [0], [4]).actions.tolist() == [[0, 4]]


def test_slots_are_used_again_and_begin_anew(serve, oracle):
    served = serve()
    first, second = BinaryClient(served, environments=2), BinaryClient(served)
    first.ask([0, 1], [START, START], [0, 0], [1, 1])
    second.ask([0], [START], [0], [1])
    first.close()
    served.turn_until(lambda: served.load == 1)
    third = BinaryClient(served, environments=3)
    answer = third.ask([0, 1, 2], [START] * 3, [0] * 3, [5, 6, 7])
    assert answer.actions.tolist() == [[0, 5], [1, 6], [3, 7]]
    fourth = BinaryClient(served)
    fourth.tell([0], [0], [1], [1])
    with pytest.raises(binary.Error, match="no episode is going on in environment 0"):
        fourth.answer()
    assert oracle.slots == {0, 1, 2, 3}


def test_an_episode_does_not_go_on_where_another_one_was_left(serve):
    served = serve()
    first = BinaryClient(served)
    first.ask([0], [START], [0], [1])
    first.close()
    served.turn_until(lambda: served.load == 0)
    second = BinaryClient(served)
    second.tell([0], [0], [1], [1])
    with pytest.raises(binary.Error, match="no episode is going on"):
        second.answer()
    assert served.stored.of("episode/reward") == []


def test_a_connection_that_finds_no_room_is_refused_and_no_other(serve, oracle):
    served = serve()
    good = BinaryClient(served)
    oracle.is_full = True
    with pytest.raises(binary.Error, match="no room for 60000 more environments") as said:
        BinaryClient(served, environments=60_000)
    assert said.value.code == ErrorCode.SERVER
    oracle.is_full = False
    assert good.ask([0], [START], [0], [1]).actions.tolist() == [[0, 1]]
    assert BinaryClient(served).ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]
    assert served.load == 2


def test_a_connection_that_finds_no_file_descriptor_is_closed_and_no_other(serve):
    served = serve()
    good = BinaryClient(served)
    lost = served.connect()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        served.turn()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with pytest.raises(ConnectionError):
        lost.receive_now()
    assert good.ask([0], [START], [0], [1]).actions.tolist() == [[0, 1]]
    assert served.load == 1, "what has been lost is no longer on its way"
    assert BinaryClient(served).ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]


def test_a_connection_of_very_many_environments_is_served(serve, oracle):
    count = 65_535
    served = serve()
    client = BinaryClient(served, environments=count)
    answer = client.ask(range(count), [START] * count, [0] * count, np.arange(count))
    np.testing.assert_array_equal(answer.actions[:, 1], np.arange(count))
    assert served.load == count


class TestAStop:
    def test_each_client_gets_the_reason_in_its_version(self, serve):
        served = serve(runs=True)
        first, second, unheard = JsonClient(served), BinaryClient(served), served.connect()
        first.tell(Act([1]))
        first.action()
        served.end()
        with pytest.raises(binary.Error, match="it stops") as said:
            second.answer()
        assert said.value.code == ErrorCode.GO_ELSEWHERE
        for connection in (first.connection, second.connection, unheard):
            with contextlib.suppress(ConnectionError):
                assert connection.receive() is None

    def test_the_end_of_the_training_is_a_reason_of_its_own(self, serve):
        served = serve(runs=True)
        client = BinaryClient(served)
        served.stop.ask(Reason(ErrorCode.TRAINING_IS_OVER, "the training is over"))
        with pytest.raises(binary.Error, match="the training is over") as said:
            client.answer()
        assert said.value.code == ErrorCode.TRAINING_IS_OVER

    def test_a_client_that_has_not_taken_its_answer_is_not_waited_for(self, serve):
        served = serve()
        within_an_answer(served)
        served.end()

    def test_agents_are_closed_and_the_last_metrics_are_stored(self, serve, oracle):
        served = serve(runs=True)
        client = BinaryClient(served)
        client.ask([0], [START], [0], [1])
        client.ask([0], [START], [0], [1])
        client.ask([0], [0], [1], [1])
        client.ask([0], [START], [0], [1])
        served.end()
        assert oracle.is_closed
        assert oracle.slots == set()
        assert served.stub.is_closed
        assert served.stored.of("episode/length") == [1.0]
        assert len(served.stored.of("inference/act latency")) == 1

    def test_the_loss_of_the_rlx_server_is_an_end(self, serve):
        served = serve(runs=True)
        client = BinaryClient(served)
        served.outbox.close()
        with contextlib.suppress(ConnectionError):
            assert client.receive() is None


class TestAWorkerOfOneConnection:
    """It has no channel to the RLX server: it ends with its connection."""

    def worker(self, oracle, timeout_s=None):
        self.stub, self.stop = Stub(), StopOnDemand()
        ours, theirs = socket.socketpair()
        made = settings(timeout_s=timeout_s)
        worker = Worker(made, lambda: Agents(oracle, self.stub, act_together=True), self.stop)
        worker.add(made.open_connection(theirs), "a test")
        return worker, ClientsEnd(ours)

    def run(self, worker, client):
        worker.run()
        worker.close()
        self.stop.close()
        client.close()

    def test_it_ends_with_its_connection(self, oracle):
        worker, client = self.worker(oracle)
        client.send(hello())
        client.send(encoded([0], [START], [0], [1]))
        client.sock.shutdown(1)
        self.run(worker, client)
        assert oracle.is_closed
        assert self.stub.is_closed

    def test_it_makes_no_agents_for_a_client_that_leaves_without_a_word(self, oracle):
        worker, client = self.worker(oracle)
        client.close()
        self.run(worker, client)
        assert not oracle.is_closed
        assert not self.stub.is_closed

    def test_it_does_not_take_the_measurements_of_shared_workers(self, oracle):
        worker, client = self.worker(oracle)
        client.send(hello())
        client.send(encoded([0], [START], [0], [1]))
        client.sock.shutdown(1)
        self.run(worker, client)
        assert [name for name, _, _ in self.stub.stored.values] == ["inference/act latency"]

    def test_an_error_of_the_bridge_reaches_its_owner(self, oracle):
        worker, client = self.worker(oracle)

        def fail(*arguments):
            raise BridgeError("the parameter server refuses")

        oracle.act = fail
        client.send(hello())
        client.send(encoded([0], [START], [0], [1]))
        with pytest.raises(BridgeError, match="refuses"):
            worker.run()
        worker.part_from_all(STOPS.code, "the parameter server refuses")
        client.receive()
        with pytest.raises(binary.Error, match="the parameter server refuses"):
            binary.raise_if_error(client.receive())
        worker.close()
        self.stop.close()
        client.close()
