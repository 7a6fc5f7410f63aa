"""Steps reach a replay server over gRPC: each once, in order, whatever happens in between."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import numpy as np
import pytest
from replay_cases import SCHEMA
from replay_servers import HeardWriters, Server, batch, wait_until

from relaax.replay import service
from relaax.replay.client import writer as writer_module
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.client.writer import ReplayWriter, WriterObserver
from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import MOST_STEPS_AT_ONCE
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ABANDONED, FINAL, GAP, START


class LosesAnswers(ReplayStub):
    """A stub behind a network with faults: answers are lost, or nothing reaches the server."""

    loses = is_away = False
    attempts = 0

    def append(self, *arguments):
        self.attempts += 1
        if not self.is_away:
            following = super().append(*arguments)
        if self.is_away or self.loses:
            raise ReplayAway("the network is down")
        return following


class Observed(WriterObserver):
    """The counts of a writer; it waits for room until ``stops`` is set."""

    def __init__(self):
        self.arrived, self.lost, self.lost_actions = [], [], []
        self.delivered, self.dropped = self.arrived.append, self.lost.append
        self.dropped_actions = self.lost_actions.append
        self.stops, self.waits = threading.Event(), threading.Semaphore(0)

    def goes_on(self):
        self.waits.release()
        return not self.stops.is_set()


@pytest.fixture(name="server")
def _server():
    server = Server()
    yield server
    server.stop()


def test_steps_of_several_environments_arrive_each_in_its_order(server):
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}"), SCHEMA)
    for first in range(0, 60, 10):
        writer.put(batch(first, 10, slot=0, start=first == 0, end=0))
        writer.put(batch(1000 + first, 10, slot=3, start=first == 0, end=0))
    writer.close()
    assert server.stored(0) == list(range(60))
    assert server.stored(1) == list(range(1000, 1060))
    assert writer.dropped == 0


def test_few_steps_are_sent_after_a_while(server):
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}"), SCHEMA)
    writer.put(batch(0, 3))
    wait_until(lambda: server.stored() == [0, 1, 2])
    writer.close()


def test_a_server_that_starts_again_gets_later_steps(server):
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=1), SCHEMA)
    writer.put(batch(0, 5, end=0))
    wait_until(lambda: server.stored() == list(range(5)))
    server.stop()
    writer.put(batch(5, 5, start=False, end=0))
    again = Server(server.port)
    try:
        wait_until(lambda: again.stored() == list(range(5, 10)))
        writer.put(batch(10, 5, start=False))
        wait_until(lambda: again.stored() == list(range(5, 15)))
    finally:
        writer.close()
        again.stop()


def test_steps_whose_answer_was_lost_for_longer_than_the_lease_are_stored_once(server):
    stub = LosesAnswers(server.url)
    writer = ReplayWriter(stub, SCHEMA)
    writer.put(batch(0, 3, end=0))
    wait_until(lambda: writer.waiting == 0)
    stub.loses = True
    writer.put(batch(3, 3, start=False, end=0))
    wait_until(lambda: server.stored() == list(range(6)) and writer.is_away)
    stub.is_away = True
    server.expire_writers()
    stub.loses = stub.is_away = False
    wait_until(lambda: writer.waiting == 0)
    writer.put(batch(6, 3, start=False, end=0))
    wait_until(lambda: writer.waiting == 0)
    writer.close()
    assert server.stored() == list(range(6))
    assert server.storage.flags[5] & FINAL
    assert server.stored(slot=1) == [6, 7, 8]


def test_an_episode_without_an_end_goes_on_apart_when_there_is_room_again(server):
    server.stop()
    stub = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2)
    writer = ReplayWriter(stub, SCHEMA, most_waiting=8, drops=True)
    both = [batch(0, 5, end=0), batch(100, 5, slot=1, end=0)]
    writer.put(StepBatch.concatenated(both))
    both = [batch(5, 5, start=False, end=0), batch(105, 5, slot=1)]  # no room: dropped
    writer.put(StepBatch.concatenated(both))
    again = Server(server.port)
    try:
        wait_until(lambda: writer.waiting == 0)
        both = [batch(10, 5, start=False, end=0), batch(110, 5, slot=1)]
        writer.put(StepBatch.concatenated(both))
        wait_until(lambda: writer.waiting == 0)
        writer.put(batch(15, 3, start=False, end=0))
        wait_until(lambda: writer.waiting == 0)
        slots = [again.stored(slot) for slot in range(3)]
        assert slots == [
            [0, 1, 2, 3, 4],
            [100, 101, 102, 103, 104, 110, 111, 112, 113, 114],  # another episode
            [10, 11, 12, 13, 14, 15, 16, 17],
        ]
        assert again.storage.flags[:5].tolist() == [START, 0, 0, 0, FINAL | ABANDONED]
        assert not (again.storage.flags & GAP).any()
    finally:
        writer.close()
        again.stop()


def test_a_full_queue_drops_to_the_end_of_the_episode(server):
    server.stop()
    stub = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2)
    writer = ReplayWriter(stub, SCHEMA, most_waiting=8, drops=True, whole_episodes=True)
    writer.put(batch(0, 10, end=0))
    writer.put(batch(10, 5, start=False, end=0))  # no room: dropped
    again = Server(server.port)
    try:
        wait_until(lambda: writer.waiting == 0)
        assert again.stored() == list(range(10))
        writer.put(batch(15, 5, start=False))  # the same episode: dropped, too
        writer.put(batch(20, 5))
        wait_until(lambda: again.stored() == [*range(10), *range(20, 25)])
        assert writer.dropped == 10
    finally:
        writer.close()
        again.stop()


def test_all_that_is_lost_is_counted_also_while_the_server_is_away_and_at_the_end(server):
    server.stop()
    stub = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2)
    observed = Observed()
    writer = ReplayWriter(stub, SCHEMA, observed, most_waiting=8, drops=True)
    writer.put(batch(0, 10, end=0))
    writer.put(batch(10, 5, start=False))
    wait_until(lambda: observed.lost == [5])
    writer.close()
    assert observed.lost == [5, 10]
    assert writer.dropped == 15


class AnswersLate(ReplayStub):
    """A stub whose server stores steps, and answers when ``answers`` is set."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.stored, self.answers = threading.Event(), threading.Event()

    def append(self, *arguments):
        following = super().append(*arguments)
        self.stored.set()
        assert self.answers.wait(20)
        return following


def test_steps_whose_answer_comes_after_the_close_are_counted_once(server):
    stub, observed = AnswersLate(server.url), Observed()
    writer = ReplayWriter(stub, SCHEMA, observed)
    writer.put(batch(0, 70))
    assert stub.stored.wait(20)
    writer.close(until=0.0)
    stub.answers.set()
    writer._thread.join(20)  # noqa: SLF001
    assert (writer.waiting, writer.dropped, observed.lost, observed.arrived) == (0, 70, [70], [])


def test_delivered_and_dropped_actions_are_counted_without_ends_of_episodes(server):
    observed = Observed()
    writer = ReplayWriter(ReplayStub(server.url), SCHEMA, observed, most_waiting=8)
    writer.put(batch(0, 10, end=FINAL))
    wait_until(lambda: sum(observed.arrived) == 10)
    server.stop()
    stub = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2)
    cut_off = ReplayWriter(stub, SCHEMA, observed, most_waiting=8, drops=True)
    cut_off.put(batch(10, 10, end=0))
    cut_off.put(batch(20, 5, start=False, end=FINAL))
    for each in (writer, cut_off):
        each.close()
    assert (sum(observed.arrived), sum(observed.lost_actions)) == (10, 5)


def test_a_stopping_writer_waits_for_room_no_longer(server):
    server.stop()
    observed = Observed()
    stub = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2)
    writer = ReplayWriter(stub, SCHEMA, observed, most_waiting=8, timeout_s=600)
    writer.put(batch(0, 10))
    with ThreadPoolExecutor(1) as threads:
        putting = threads.submit(writer.put, batch(10, 5, start=False))
        for _ in range(3):
            assert observed.waits.acquire(timeout=20)
        assert not putting.done()
        observed.stops.set()
        putting.result(20)
    writer.close()
    assert writer.dropped == 15


def test_a_batch_that_is_too_large_for_a_message_is_sent_as_several():
    server, count = Server(capacity=3 * MOST_STEPS_AT_ONCE), MOST_STEPS_AT_ONCE + 10
    stub = LosesAnswers(server.url)
    writer = ReplayWriter(stub, SCHEMA)
    writer.put(batch(0, count, end=0))
    wait_until(lambda: writer.waiting == 0)
    writer.close()
    assert server.stored() == list(range(count))
    assert stub.attempts == 2
    server.stop()


def test_one_that_drops_does_not_wait_for_a_server_that_starts(server):
    stub = LosesAnswers(f"127.0.0.1:{server.port}")
    stub.is_away = True
    writer = ReplayWriter(
        stub, SCHEMA, most_waiting=8, drops=True, timeout_s=0, first_timeout_s=600
    )
    writer.put(batch(0, 10))
    wait_until(lambda: writer.is_away)
    assert writer.gives_up
    writer.close()


def test_a_server_that_has_not_answered_yet_is_waited_for_longer(server):
    stub = LosesAnswers(f"127.0.0.1:{server.port}")
    stub.is_away = True
    writer = ReplayWriter(stub, SCHEMA, most_waiting=8, timeout_s=0, first_timeout_s=600)
    writer.put(batch(0, 10))
    with ThreadPoolExecutor(1) as threads:
        wait_until(lambda: writer.is_away)
        putting = threads.submit(writer.put, batch(10, 10, start=False))
        attempts = stub.attempts
        wait_until(lambda: stub.attempts > attempts + 1)
        assert not putting.done()
        stub.is_away = False
        putting.result(20)
    wait_until(lambda: writer.waiting == 0)
    assert server.stored() == list(range(20))
    stub.is_away = True
    writer.put(batch(20, 10, start=False))
    wait_until(lambda: writer.is_away)
    writer.put(batch(30, 10, start=False))
    assert writer.dropped == 10
    writer.close()


def test_a_server_that_does_not_answer_is_named_once(server, caplog):
    stub = LosesAnswers(f"127.0.0.1:{server.port}")
    writer = ReplayWriter(stub, SCHEMA)
    for first in (0, 10):
        stub.is_away, before = True, stub.attempts
        writer.put(batch(first, 10, start=first == 0, end=0))
        wait_until(lambda before=before: stub.attempts > before + 2)
        stub.is_away = False
        wait_until(lambda: writer.waiting == 0)
    writer.close()
    assert server.stored() == list(range(20))
    said = "waiting: the network is down"
    assert [record.getMessage() for record in caplog.records] == [said, said]


def test_steps_that_are_dropped_again_and_again_are_in_the_log_now_and_then(server, caplog):
    server.stop()
    stub, observed = ReplayStub(f"127.0.0.1:{server.port}", call_timeout_s=0.2), Observed()
    writer = ReplayWriter(stub, SCHEMA, observed, most_waiting=8, drops=True)
    writer.put(batch(0, 10, end=0))
    for first in range(10, 60, 10):
        writer.put(batch(first, 10, start=False))
        wait_until(lambda first=first: sum(observed.lost) == first)
    writer.close()
    assert sum(observed.lost) == 60
    said = [each.getMessage() for each in caplog.records if "dropped" in each.getMessage()]
    assert len(said) == 2
    assert sum(int(each.split()[0]) for each in said) == 60


def test_a_full_table_makes_the_writer_wait_however_long_it_takes(server, monkeypatch):
    monkeypatch.setattr(service, "LONGEST_WAIT_S", 0.2)
    server.stop()
    full = Server(limiter=Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    stub = ReplayStub(f"127.0.0.1:{full.port}", call_timeout_s=5)
    writer = ReplayWriter(stub, SCHEMA, most_waiting=16, timeout_s=0.2)

    def write():
        for first in range(0, 160, 16):
            writer.put(batch(first, 16))

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        with pytest.raises(TimeoutError):
            writing.result(1.0)  # longer than the server keeps a call, and than the timeout
        while not writing.done():
            with suppress(NotReady):
                full.replay.sample("all", 4, 0.05)
    for _ in range(20):
        with suppress(NotReady):
            full.replay.sample("all", 4, 0.05)
    try:
        wait_until(lambda: full.stored() == list(range(160)))
        assert writer.dropped == 0
    finally:
        writer.close()
        full.stop()


class Counting(ReplayStub):
    """Counts what is sent."""

    calls = 0

    def append(self, *arguments, **named):
        self.calls += 1
        return super().append(*arguments, **named)


def test_steps_after_unsendable_ones_at_the_end_are_not_sent_either(server, monkeypatch):
    monkeypatch.setattr(writer_module, "CLOSE_DEADLINE_S", 0.4)
    server.stop()
    full = Server(limiter=Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    stub = Counting(f"127.0.0.1:{full.port}", call_timeout_s=5)
    writer = ReplayWriter(stub, SCHEMA)
    writer.put(batch(0, 64, end=0))
    wait_until(lambda: writer.waiting == 0)
    sent = stub.calls
    writer.put(batch(64, 64, start=False, end=0))  # there is no room for these
    wait_until(lambda: stub.calls > sent)
    writer.put(batch(128, 64, start=False))
    writer.close()
    for _ in range(40):
        with suppress(NotReady):
            full.replay.sample("all", 4, 0.02)
    assert full.stored() in (list(range(64)), list(range(128)))
    full.stop()


def test_steps_of_another_kind_are_refused_by_the_name_of_the_column(server):
    other = Schema({**SCHEMA.columns, "reward": Column(np.dtype(np.float64))})
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}"), other)
    writer.put(batch(0, 70))

    def refused():
        try:
            writer.put(batch(100, 1))
        except Exception as error:
            return "column 'reward' is float64 []" in str(error)
        return False

    wait_until(refused)
    writer.close()


def test_starts_are_kept(server):
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}"), SCHEMA)
    writer.put(batch(0, 3))
    writer.put(batch(3, 3))
    writer.close()
    flags = server.storage.flags[:6]
    assert (flags & START != 0).tolist() == [True, False, False, True, False, False]


def test_the_episodes_of_a_writer_that_is_closed_end_at_once(server):
    writer = ReplayWriter(ReplayStub(f"127.0.0.1:{server.port}"), SCHEMA)
    writer.put(batch(0, 3, end=0))
    writer.close()
    assert server.replay.stats()["writers"] == 0
    assert server.storage.flags[:3].tolist() == [START, 0, FINAL | ABANDONED]


def test_a_restored_server_takes_later_steps_and_counts_lost_ones(server):
    writer = ReplayWriter(ReplayStub(server.url, call_timeout_s=1), SCHEMA)
    writer.put(batch(0, 5, end=0))
    wait_until(lambda: server.stored() == list(range(5)))
    saved = server.replay.contents()
    writer.put(batch(5, 4, start=False, end=0))
    wait_until(lambda: server.stored() == list(range(9)))
    server.stop()
    again = Server(server.port)
    again.replay.restore(saved)
    try:
        writer.put(batch(9, 3, start=False, end=0))
        wait_until(lambda: again.stored(slot=1) == [9, 10, 11])
        assert again.stored() == list(range(5))
        assert again.storage.flags[:5].tolist() == [START, 0, 0, 0, FINAL | ABANDONED]
        assert again.replay.stats()["steps lost"] == 4
    finally:
        writer.close()
        again.stop()


def test_waiting_writers_leave_threads_for_samplers(monkeypatch):
    monkeypatch.setattr(service, "MOST_WAITING", 2)  # of four threads
    monkeypatch.setattr(service, "LONGEST_WAIT_S", 60.0)
    full = Server(limiter=Limiter(min_items=1, samples_per_insert=1.0, error_buffer=1.0))
    writers = [ReplayWriter(ReplayStub(full.url), SCHEMA) for _ in range(6)]
    for number, writer in enumerate(writers):
        for first in range(0, 128, 64):
            writer.put(batch(1000 * number + first, 64))
    stub = ReplayStub(full.url)

    def draw():
        with suppress(NotReady):
            stub.sample("all", 8, 0.0)
        return full.replay.stored == 6 * 128

    try:
        wait_until(draw)
    finally:
        for writer in writers:
            writer.close()
        stub.close()
        full.stop()


#: Observations are bytes, unless others come first.
OPEN = Schema({**SCHEMA.columns, "observation": Column(np.dtype(np.uint8), (2,), is_open=True)})


def test_an_open_column_gets_the_first_type_and_steps_of_another_type_end_no_writer(caplog):
    server = Server(schema=OPEN)
    try:
        writer = ReplayWriter(ReplayStub(server.url), OPEN)
        steps = batch(0, 70)
        steps.columns["observation"][:] /= 256
        writer.put(steps)
        writer.close()
        assert server.storage.columns["observation"].dtype == np.float32
        assert server.storage.columns["observation"][5, 0] == np.float32(5 / 256)
        another = ReplayWriter(ReplayStub(server.url), OPEN)
        others = batch(0, 70)
        others.columns["observation"] = others.columns["observation"].astype(np.uint8)
        bytes_ = {"observation": np.dtype(np.uint8)}
        assert another.stored_types(bytes_) == {"observation": np.dtype(np.float32)}
        another.put(others)
        assert another.flush(10)
        another.close()
        assert another.dropped == 70
        assert "is uint8 [2], and must be float32 [2]" in caplog.text
    finally:
        server.stop()


def test_writers_that_begin_at_once_agree_on_the_type_of_one_of_them():
    server = Server(schema=OPEN)
    try:
        first, second = (ReplayWriter(ReplayStub(server.url), OPEN) for _ in range(2))
        floats, bytes_ = ({"observation": np.dtype(kind)} for kind in ("f4", "u1"))
        assert first.stored_types(floats) == second.stored_types(bytes_) == floats
        first.close()
        second.close()
    finally:
        server.stop()


def test_a_server_that_has_started_again_learns_the_type_from_its_writer():
    server = Server(schema=OPEN)
    writer = ReplayWriter(ReplayStub(server.url), OPEN)
    writer.put(batch(0, 70, end=0))
    assert writer.flush(10)
    server.stop()
    server = Server(server.port, schema=OPEN)
    try:
        writer.put(batch(70, 70, start=False))
        assert writer.flush(30)
        writer.close()
        assert server.storage.columns["observation"].dtype == np.float32
    finally:
        server.stop()


def test_a_writer_that_is_connected_keeps_its_slots_however_far_apart_its_steps_are():
    """Between two steps one and a half leases pass; the writer is heard of more often."""
    writers = HeardWriters(lease_s=0.04)
    server = Server(writers=writers)
    with closing(ReplayWriter(ReplayStub(server.url), SCHEMA)) as writer:
        for number in range(20):
            writer.put(batch(number, 1, start=number == 0, end=0))
            assert writer.flush(10.0)
            for _ in range(2):
                writers.pass_time(0.03)
                server.replay.reclaim()
        assert len(server.table) == 19
    server.stop()
