"""Clients that send too many messages a second: they go, or wait, and no others do."""

import struct
import time

import pytest
from clock import Clock
from served_worker import BinaryClient, Oracle, encoded, serve_batches

from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Metric
from relaax.server.rlx_server.limits import ClientLimits
from relaax.server.rlx_server.tally import RESTS
from relaax.server.rlx_server.worker import loop
from relaax.steps import START


@pytest.fixture(name="clock")
def _clock():
    return Clock(time.monotonic())


@pytest.fixture(name="served")
def _served(clock):
    served = serve_batches(Oracle(), clock=clock, limits=ClientLimits(most_messages=0.5))
    yield served
    served.close()


def test_a_client_whose_steps_wait_for_an_answer_is_closed_and_no_other(served, clock):
    hasty, quiet = BinaryClient(served), BinaryClient(served)
    clock.now += 10.0  # so that their hellos were long ago
    served.turn()
    clock.now += 1.0
    hasty.tell([0], [START], [0], [1])
    payload = hasty.receive()
    with pytest.raises(binary.Error, match="messages a second") as refused:
        binary.decode_answers(payload)
    assert refused.value.code == ErrorCode.PROTOCOL
    assert served.load == 1
    served.turn(3)
    assert quiet.connection.begun_now() == b""  # its connection is open


def metrics(first, last):
    """Return the frames of metrics, which are counted."""
    payloads = [binary.encode_metric(Metric("count", float(y))) for y in range(first, last)]
    return b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)


def counted(served):
    return [y for name, y, _ in served.stored.values if name.endswith("count")]


@pytest.fixture(name="patient")
def _patient(clock):
    served = serve_batches(
        Oracle(), clock=clock, limits=ClientLimits(most_metrics=40), message_timeout_s=1e-9
    )
    served.turn()
    yield served
    served.close()


def test_metrics_beyond_the_limit_are_read_in_the_next_second_without_loss(patient, clock):
    """What a client sends after them waits as well: messages keep their order."""
    client, other = BinaryClient(patient), BinaryClient(patient)
    payload = encoded([0], [START], [0], [7])
    client.connection.sock.send(
        metrics(0, 70) + struct.pack("<I", len(payload)) + payload + metrics(70, 75)
    )
    patient.turn(20)
    assert counted(patient) == list(range(40))
    assert other.ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]
    assert not client.connection.has_message
    clock.now += 1.0
    assert client.answer().actions.tolist() == [[0, 7]]
    patient.turn(20)
    assert counted(patient) == list(range(75))


def test_a_message_that_waits_while_its_connection_rests_is_not_overdue(patient, clock):
    client = BinaryClient(patient)
    flood = metrics(0, 50)
    client.connection.sock.send(flood[:-3])  # the rest comes late, and is not asked for
    patient.turn(20)
    clock.now += 1.0
    patient.turn(20)
    assert counted(patient) == list(range(49))
    client.connection.sock.send(flood[-3:])
    patient.turn(20)
    assert counted(patient) == list(range(50))


def test_a_client_that_leaves_while_its_connection_rests_is_forgotten(patient, clock):
    client, other = BinaryClient(patient), BinaryClient(patient)
    client.connection.sock.send(metrics(0, 50))
    patient.turn(20)
    client.close()
    patient.turn(20)
    assert patient.load == 2
    clock.now += 1.0
    patient.turn_until(lambda: patient.load == 1)
    assert other.ask([0], [START], [0], [1]).actions.tolist() == [[1, 1]]


def test_no_more_than_some_metrics_of_a_connection_are_handled_in_a_turn(patient, clock):
    one, two = BinaryClient(patient), BinaryClient(patient)
    for client in (one, two):
        client.connection.sock.send(metrics(0, 40))
    patient.turn()
    assert len(counted(patient)) == 2 * loop.METRICS_A_TURN


def test_an_operator_sees_a_client_that_sends_more_metrics_than_are_read(patient, clock, caplog):
    """The log once for a connection, a count each time."""
    for client in (BinaryClient(patient), BinaryClient(patient)):
        client.connection.sock.send(metrics(0, 90))
    for _ in range(3):
        patient.turn(20)
        clock.now += 1.0
    assert len(counted(patient)) == 180
    assert caplog.text.count("a test has sent 40 metrics in a second") == 2
    assert caplog.text.count("(--max-metric-rate)") == 2
    assert patient.cells[RESTS] == 4


def test_a_client_with_fewer_metrics_is_not_named(patient, clock, caplog):
    client = BinaryClient(patient)
    for _ in range(3):
        client.connection.sock.send(metrics(0, 39))
        patient.turn(20)
        clock.now += 1.0
        patient.turn(1)
    assert len(counted(patient)) == 3 * 39
    assert "--max-metric-rate" not in caplog.text
    assert patient.cells[RESTS] == 0
