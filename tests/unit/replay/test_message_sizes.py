"""A replay server and Memoire's server take no message that is compressed, or far too large."""

from contextlib import closing

import grpc
import numpy as np
import pytest
from memoire_entries import ENTRY
from processes import free_port
from replay_cases import SCHEMA, steps

from relaax.address import Address
from relaax.compat.memoire import ReplayMemoryServer
from relaax.compat.memoire.service import MemoireStub
from relaax.errors import BridgeError
from relaax.replay import replay_pb2
from relaax.replay.client.stub import ReplayStub
from relaax.replay.replay import Replay
from relaax.replay.service import ReplayPort
from relaax.replay.specs import MOST_STEPS_AT_ONCE
from relaax.replay.storage import Storage
from relaax.replay.writers import Writers


@pytest.fixture(name="url")
def _url():
    url = f"127.0.0.1:{free_port()}"
    replay = Replay(Storage(SCHEMA, 1024), {}, Writers(60))
    with closing(ReplayPort(Address.parse(url), replay)):
        yield url


@pytest.fixture(name="memoire_url")
def _memoire_url():
    url = f"127.0.0.1:{free_port()}"
    with closing(ReplayMemoryServer(ENTRY, 64, 1)) as server:
        server.max_message_bytes = 1024 * 1024
        server.bind(url)
        yield url


def require_no_gzip(url: str, method: str) -> None:
    with grpc.insecure_channel(url) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(method)(bytes(1024), compression=grpc.Compression.Gzip, timeout=20)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_replay_server_unpacks_nothing(url):
    require_no_gzip(url, "/relaax.replay.Replay/Append")


def test_memoires_server_unpacks_nothing(memoire_url):
    require_no_gzip(memoire_url, "/relaax.compat.memoire.Memoire/Publish")


def test_a_replay_server_takes_the_messages_of_its_writers_and_no_larger_ones(url):
    """The second one would be sent again and again, if it was taken for a table that is full."""
    with closing(ReplayStub(url)) as stub:
        stub.open("a", SCHEMA)
        rows, flags = steps(0, MOST_STEPS_AT_ONCE)
        run = replay_pb2.Run(environment=0, first=0, count=len(flags))
        assert stub.append("a", [run], flags, list(rows.values())) == [len(flags)]
        with pytest.raises(BridgeError, match="larger than max"):
            stub.append("a", [run], np.zeros(5 * 1024 * 1024, np.uint8), list(rows.values()))


def test_memoires_server_takes_messages_up_to_its_setting(memoire_url):
    with closing(MemoireStub(memoire_url)) as stub:
        stub.publish("", bytes(1000 * 1024))
        with pytest.raises(BridgeError, match="larger than max"):
            stub.publish("", bytes(1024 * 1024))
