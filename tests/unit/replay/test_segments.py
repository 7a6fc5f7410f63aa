"""Samples come through shared memory where both ends are on one host, and by wire elsewhere."""

import gc
import multiprocessing
import os
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import numpy as np
import pytest
from processes import wait_for
from replay_programs import draw_images, image_replay, serve_images

from relaax.replay import replay_pb2, segments
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.replay import NotReady
from relaax.replay.segments import (
    FILE_NAME,
    IS_POSSIBLE,
    TOKEN_BYTES,
    MappedSegments,
    Segment,
    SharedSamples,
)
from relaax.replay.service import ReplayServicer, method_handlers
from relaax.replay.wire import ITEMS, SERVICE_NAME

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="the system has no memfd")

#: A call that is answered has no use for it.
NO_CONTEXT = None

SPAWN = multiprocessing.get_context("spawn")
START_DEADLINE_S = 60.0


@contextmanager
def process(target, *arguments):
    """A program of ``replay_programs``: the process, and what it sent first."""
    ours, theirs = SPAWN.Pipe()
    child = SPAWN.Process(target=target, args=(theirs, *arguments), daemon=True)
    child.start()
    theirs.close()
    try:
        assert ours.poll(START_DEADLINE_S)
        yield child, ours.recv()
    finally:
        ours.close()
        child.join(START_DEADLINE_S)
        child.kill()
        child.join()
        child.close()


@pytest.fixture(name="server", scope="module")
def _server():
    """The port of a server in another process."""
    with process(serve_images) as (_, port):
        yield port


class Client:
    """Samples as a stub draws them, and how each of them came."""

    def __init__(self, port):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.samples = SharedSamples()
        self.was_shared = []
        self._method = self.channel.unary_unary(
            f"/{SERVICE_NAME}/Sample", replay_pb2.Request.SerializeToString, ITEMS.decode
        )

    def call(self, request):
        reply = self._method(request, timeout=10, wait_for_ready=True)
        self.was_shared.append(reply.fields.in_segment)
        return reply

    def sample(self, table="transitions", count=32):
        request = replay_pb2.Request(table=table, count=count, timeout_s=5)
        return self.samples.sample(request, self.call)

    def close(self):
        self.channel.close()
        self.samples.close()


@pytest.fixture(name="client")
def _client(server):
    client = Client(server)
    yield client
    client.close()


def contents(sample):
    return {
        "key": sample.keys.copy(),
        "probability": sample.probabilities.copy(),
        **{name: column.copy() for name, column in sample.columns.items()},
    }


def assert_equal(sample, expected):
    found = contents(sample)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def segments_of(process_id):
    """How many segments a process has mapped."""
    return Path(f"/proc/{process_id}/maps").read_text().count(f"memfd:{FILE_NAME}")


def sizes_of(name):
    """The bytes of each of this process' mappings of files with ``name``."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    extents = [line.split()[0].split("-") for line in lines if name in line]
    return [int(end, 16) - int(begin, 16) for begin, end in extents]


def descriptors():
    """How many files of this process are segments."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except FileNotFoundError:  # that of the directory, which was read
            continue
    return sum(FILE_NAME in link for link in links)


@pytest.mark.parametrize("table", ["transitions", "windows"])
def test_samples_in_shared_memory_are_those_of_a_replay_in_this_process(table):
    replay = image_replay()
    with process(serve_images) as (_, port):
        client = Client(port)
        for _ in range(4):
            assert_equal(client.sample(table), contents(replay.sample(table, 32, 0.0)))
        client.close()
    assert client.was_shared == [False, True, True, True]


def test_a_sample_stays_as_it_is_while_others_are_drawn(client):
    client.sample()
    kept = [client.sample() for _ in range(3)]
    expected = [contents(sample) for sample in kept]
    for _ in range(5):
        client.sample()
    assert all(client.was_shared[1:])
    for sample, content in zip(kept, expected, strict=True):
        assert_equal(sample, content)


def test_one_array_is_enough_to_keep_a_sample(client):
    client.sample()
    first_row = client.sample().columns["observation"][0]
    expected = first_row.copy()
    for _ in range(5):
        client.sample()
    np.testing.assert_array_equal(first_row, expected)


def test_samples_cannot_be_written(client):
    client.sample()
    with pytest.raises(ValueError, match="read-only"):
        client.sample().columns["observation"][0] = 0


def test_memory_is_used_again_when_its_sample_is_gone(client):
    for _ in range(10):
        client.sample()
    assert client.was_shared[1:] == [True] * 9
    assert segments_of(os.getpid()) == 1


def test_samples_beyond_the_most_segments_are_sent(client, monkeypatch):
    monkeypatch.setattr(segments, "MOST_LENT", 2)
    kept = [client.sample() for _ in range(5)]
    assert client.was_shared == [False, True, True, False, False]
    kept.clear()
    client.sample()
    assert client.was_shared[-1]


def test_a_larger_sample_has_a_larger_segment(client):
    for count in (16, 16, 64, 128, 16):
        assert len(client.sample(count=count).keys) == count
    assert client.was_shared == [False, True, True, True, True]
    assert segments_of(os.getpid()) == 1


def test_a_small_sample_is_sent(client):
    for _ in range(3):
        client.sample(count=1)
    assert client.was_shared == [False] * 3


def test_a_sample_that_does_not_fit_is_sent(client, monkeypatch):
    replay = image_replay()
    client.sample()
    monkeypatch.setattr(segments, "HEADROOM", 0.5)
    sample = client.sample()
    assert client.was_shared == [False, False]
    assert sample.columns["observation"].shape == (32, 4, 84, 84)
    assert sample.columns.keys() == replay.sample("transitions", 1, 0.0).columns.keys()
    monkeypatch.undo()
    client.sample()
    assert client.was_shared[-1]


def test_closing_gives_all_memory_up(server):
    client = Client(server)
    client.sample()
    kept = client.sample()
    expected = contents(kept)
    client.close()
    assert_equal(kept, expected)
    assert descriptors() > 0
    del kept
    gc.collect()
    assert descriptors() == 0
    assert segments_of(os.getpid()) == 0


def test_nothing_is_put_into_dev_shm(request):
    before = sizes_of("/dev/shm/")  # semaphores of another test, for instance
    client = request.getfixturevalue("client")
    client.sample()
    kept = client.sample()
    assert client.was_shared == [False, True]
    assert kept.columns["observation"].nbytes <= sum(sizes_of(FILE_NAME))
    assert sizes_of("/dev/shm/") == before


def with_room(name):
    """What a server finds of a segment."""
    mapped = MappedSegments()
    room = mapped.room(name)
    mapped.close()
    return room


@pytest.fixture(name="segment")
def _segment():
    segment = Segment(4096)
    yield segment
    segment.close()


def changed(name, **fields):
    other = replay_pb2.Segment()
    other.CopyFrom(name)
    for field, value in fields.items():
        setattr(other, field, value)
    return other


def test_a_segment_is_used_with_its_own_name_alone(segment):
    assert with_room(segment.name) is not None
    assert with_room(changed(segment.name, token=bytes(TOKEN_BYTES))) is None
    assert with_room(changed(segment.name, token=b"")) is None
    assert with_room(changed(segment.name, process=2**22 + 1)) is None
    assert with_room(changed(segment.name, descriptor=10_000)) is None


def test_no_other_file_is_opened(segment, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(4096))
    os.mkfifo(tmp_path / "pipe")  # to open it would wait for the other end
    for name, flags in (("file", os.O_RDWR), ("pipe", os.O_RDWR)):
        descriptor = os.open(tmp_path / name, flags)
        assert with_room(changed(segment.name, descriptor=descriptor)) is None
        os.close(descriptor)


def test_memory_that_could_shrink_is_not_used(segment):
    descriptor = os.memfd_create(FILE_NAME)
    os.write(descriptor, segment.name.token + bytes(4096))
    assert with_room(changed(segment.name, descriptor=descriptor)) is None
    os.close(descriptor)


def test_no_more_segments_are_mapped_than_a_server_allows(segment, monkeypatch):
    monkeypatch.setattr(segments, "MOST_SEGMENTS", 0)
    assert with_room(segment.name) is None


def test_a_client_that_names_a_missing_segment_is_sent_its_samples(client, monkeypatch):
    expected = client.sample()
    monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)  # as on another host
    for _ in range(3):
        assert client.sample().columns.keys() == expected.columns.keys()
    assert client.was_shared == [False] * 4
    monkeypatch.undo()
    assert segments_of(os.getpid()) == 1  # it is not tried again


def test_memory_that_a_server_may_write_later_is_not_used_again(client):
    client.sample()
    client.sample()

    def answer(request):
        raise ReplayAway("the call took too long")

    before = descriptors()
    with pytest.raises(ReplayAway):
        client.samples.sample(replay_pb2.Request(table="transitions", count=32), answer)
    assert descriptors() < before


def test_memory_is_kept_while_there_are_not_enough_items(client):
    client.sample()
    client.sample()

    def answer(request):
        raise NotReady("not yet")

    before = descriptors()
    with pytest.raises(NotReady):
        client.samples.sample(replay_pb2.Request(table="transitions", count=32), answer)
    assert descriptors() == before


def test_a_server_forgets_the_memory_of_a_client_that_was_killed(monkeypatch):
    monkeypatch.setattr(segments, "CHECK_S", 0.05)
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((method_handlers(ReplayServicer(image_replay())),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with process(draw_images, port) as (child, samples):
        assert samples == 3
        assert segments_of(os.getpid()) == 2
        child.kill()
        wait_for(lambda: segments_of(os.getpid()) == 0, "the memory being given up")
    server.stop(0).wait()


def test_a_server_that_is_closed_gives_the_memory_of_clients_up(segment):
    servicer = ReplayServicer(image_replay())
    request = replay_pb2.Request(table="windows", count=1, timeout_s=5, segment=segment.name)
    assert segments_of(os.getpid()) == 1
    reply = servicer.sample(request, NO_CONTEXT)
    assert reply.payload is not None  # it does not fit
    assert segments_of(os.getpid()) == 2
    servicer.forget_memory()
    del reply  # some of its arrays did fit
    gc.collect()
    assert segments_of(os.getpid()) == 1


def test_a_server_that_was_killed_leaves_samples_as_they_are_and_shares_when_it_is_back():
    with process(serve_images) as (child, port):
        stub = ReplayStub(f"127.0.0.1:{port}", call_timeout_s=5)
        stub.sample("transitions", 32, 5.0)
        kept = stub.sample("transitions", 32, 5.0)
        expected = contents(kept)
        child.kill()
        child.join()
        with pytest.raises(ReplayAway):
            stub.sample("transitions", 32, 5.0)
        assert_equal(kept, expected)
    with process(serve_images, port) as (child, _):
        wait_for(lambda: drawn(stub) is not None, "the server being found again")
        assert segments_of(child.pid) == 1
        assert_equal(kept, expected)
    stub.close()


def drawn(stub):
    try:
        return stub.sample("transitions", 32, 5.0)
    except ReplayAway:
        return None
