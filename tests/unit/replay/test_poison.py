"""A replay server refuses what is not finite, or of another size, and names the sender."""

import re
from contextlib import closing

import grpc
import numpy as np
import pytest
from replay_cases import SCHEMA, steps
from replay_servers import Server

from relaax.errors import BridgeError
from relaax.replay import replay_pb2, replay_pb2_grpc
from relaax.replay.client.stub import ReplayStub

REFUSED = re.compile(r"a call from 127\.0\.0\.1:\d+ was refused")


@pytest.fixture(name="server")
def _server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture(name="stub")
def _stub(server):
    with closing(ReplayStub(server.url)) as stub:
        stub.open("writer", SCHEMA)
        yield stub


@pytest.fixture(name="calls")
def _calls(server):
    """Calls as another program may make them, of messages that ``ReplayStub`` sends none of."""
    with grpc.insecure_channel(server.url) as channel:
        yield replay_pb2_grpc.ReplayStub(channel)


def append(stub, rows, flags):
    run = replay_pb2.Run(environment=0, first=0, count=len(flags))
    return stub.append("writer", [run], flags, list(rows.values()))


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["observation", "reward"])
def test_steps_that_are_not_finite_are_refused_and_not_stored(server, stub, caplog, column, poison):
    rows, flags = steps(0, 8)
    rows[column].reshape(-1)[3] = poison
    with pytest.raises(
        BridgeError, match=rf"column '{column}' is not finite \(sent from 127\.0\.0\.1:\d+\)"
    ):
        append(stub, rows, flags)
    assert server.stored() == []
    assert REFUSED.search(caplog.text)
    assert append(stub, *steps(0, 8)) == [8]


def test_steps_of_another_size_are_refused(server, stub, caplog):
    rows, flags = steps(0, 8)
    with pytest.raises(BridgeError, match="sent from"):
        append(stub, rows | {"reward": rows["reward"][:5]}, flags)
    assert server.stored() == []
    assert REFUSED.search(caplog.text)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -1.0])
def test_priorities_that_are_no_weights_are_refused(stub, caplog, poison):
    with pytest.raises(BridgeError, match=r"priorities must be finite, .* \(sent from 127\.0"):
        stub.update_priorities("all", np.array([0, 1]), np.array([1.0, poison]))
    assert REFUSED.search(caplog.text)


@pytest.mark.parametrize(
    "dtype", [",f4", "f4,f4", "(1000000000,)f4", "O", "V8", "<i7", "M8[s]", ""]
)
def test_a_column_that_is_not_numeric_is_refused(calls, caplog, dtype):
    """numpy reads some of these as a program, which may be no program at all."""
    opening = replay_pb2.Opening(writer="b", columns=[replay_pb2.Column(name="a", dtype=dtype)])
    with pytest.raises(grpc.RpcError, match=r"is no type of numbers \(sent from 127\.0"):
        calls.Open(opening)
    assert REFUSED.search(caplog.text)


def test_a_step_without_columns_is_refused(calls):
    with pytest.raises(grpc.RpcError, match="a step needs at least one column"):
        calls.Open(replay_pb2.Opening(writer="b"))


def test_no_more_items_are_drawn_than_a_learner_needs(stub, calls):
    append(stub, *steps(0, 8))
    assert len(stub.sample("all", 1000, 0.0).keys) == 1000
    with pytest.raises(grpc.RpcError, match="at most 100000 items are drawn at once, not"):
        calls.Sample(replay_pb2.Request(table="all", count=2**32 - 1))
