"""Environments are spread over replay servers, and stay where they are while those answer."""

import pytest
from replay_cases import SCHEMA
from replay_servers import Server, batch, wait_until
from stored_metrics import StoredMetrics

from relaax.replay.client.spread import SpreadWriter, StepReports, writer_to
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.specs import ReplaySpec
from relaax.replay.step_batch import StepBatch


class Spread:
    """Two servers, and a writer to both."""

    def __init__(self, first=0):
        self.servers = [Server(), Server()]
        self.writers = [
            ReplayWriter(ReplayStub(server.url, call_timeout_s=1), SCHEMA, timeout_s=0.1)
            for server in self.servers
        ]
        self.writer = SpreadWriter(self.writers, first)

    def put(self, *batches):
        self.writer.put(StepBatch.concatenated(batches))

    def stored(self, server, slot=0):
        return self.servers[server].stored(slot)

    def restart(self, number):
        self.servers[number] = Server(self.servers[number].port)

    def close(self):
        self.writer.close()
        for server in self.servers:
            server.stop()


@pytest.fixture(name="spread")
def _spread():
    spread = Spread()
    yield spread
    spread.close()


def test_environments_are_dealt_out_and_stay(spread):
    for first in range(0, 60, 20):
        is_first = first == 0
        spread.put(
            batch(first, 20, slot=0, start=is_first, end=0),
            batch(1000 + first, 20, slot=1, start=is_first, end=0),
            batch(2000 + first, 20, slot=2, start=is_first, end=0),
        )
    wait_until(lambda: spread.stored(0, slot=1) == list(range(2000, 2060)))
    wait_until(lambda: spread.stored(1) == list(range(1000, 1060)))
    assert spread.stored(0) == list(range(60))


def test_another_worker_begins_with_another_server():
    spread = Spread(first=1)
    try:
        spread.put(batch(0, 5))
        wait_until(lambda: spread.stored(1) == list(range(5)))
        assert spread.stored(0) == []
    finally:
        spread.close()


def test_an_episode_without_an_end_goes_on_at_another_server(spread):
    spread.put(batch(0, 5, end=0))
    wait_until(lambda: spread.stored(0) == list(range(5)))
    spread.servers[0].stop()
    spread.put(batch(5, 3, start=False, end=0))
    wait_until(lambda: spread.writers[0].gives_up)
    spread.put(batch(8, 4, start=False, end=0))
    spread.put(batch(12, 4, start=False, end=0))
    wait_until(lambda: spread.stored(1) == list(range(8, 16)))
    spread.restart(0)
    wait_until(lambda: spread.stored(0) == list(range(5, 8)))
    wait_until(lambda: not spread.writers[0].gives_up)  # the answer has come, too
    spread.put(batch(16, 4))
    wait_until(lambda: spread.stored(0) == [*range(5, 8), *range(16, 20)])
    assert spread.writer.dropped == 0


def test_an_episode_that_begins_while_its_server_is_away_goes_to_another_one(spread):
    spread.put(batch(0, 5, end=0))
    wait_until(lambda: spread.stored(0) == list(range(5)))
    spread.servers[0].stop()
    spread.put(batch(5, 3, start=False, end=0))
    wait_until(lambda: spread.writers[0].is_away)
    spread.put(batch(8, 2, start=False), batch(10, 4))
    wait_until(lambda: spread.stored(1) == list(range(10, 14)))
    spread.restart(0)
    wait_until(lambda: spread.stored(0) == list(range(5, 10)))
    wait_until(lambda: not spread.writers[0].gives_up)
    spread.put(batch(14, 4))
    wait_until(lambda: spread.stored(0) == [*range(5, 10), *range(14, 18)])
    assert spread.writer.dropped == 0


def test_while_no_server_answers_steps_are_dropped_and_counted(spread):
    for server in spread.servers:
        server.stop()
    spread.put(batch(0, 300, end=0), batch(1000, 300, slot=1, end=0))
    wait_until(lambda: all(writer.is_away for writer in spread.writers))
    spread.put(batch(300, 10, start=False), batch(310, 10))
    spread.put(batch(1300, 10, slot=1, start=False))
    assert spread.writer.dropped == 30


class Recorded(ReplayWriter):
    """A writer that notes in what order it is asked to end, and until when it waits."""

    def __init__(self, *arguments, ends):
        self.ends = ends
        super().__init__(*arguments)

    def finish(self):
        self.ends.append("finish")
        super().finish()

    def close(self, until=None):
        self.ends.append(until)
        super().close(until)


def test_at_the_end_all_servers_have_one_deadline_together():
    servers, ends = [Server() for _ in range(3)], []
    SpreadWriter([Recorded(ReplayStub(each.url), SCHEMA, ends=ends) for each in servers]).close()
    assert ends[:3] == ["finish"] * 3
    untils = [each for each in ends if each != "finish"]
    assert len(untils) == 3
    assert set(untils) == {untils[0]}
    assert untils[0] is not None
    for server in servers:
        server.stop()


def test_each_count_of_dropped_steps_is_a_metric_of_the_actors_and_not_of_the_replay():
    server, stored = Server(), StoredMetrics()
    spec = ReplaySpec(SCHEMA, 512, {})
    server.stop()
    writer = writer_to([server.url], spec, StepReports(stored), drops=True)
    writer.put(batch(0, 256, end=0))  # all that may wait
    writer.put(batch(256, 5, start=False))
    wait_until(lambda: stored.values)
    writer.close()
    assert stored.values["actor/steps dropped"] == [(5, None), (256, None)]


@pytest.mark.parametrize(
    ("way", "first", "second"),
    [("round-robin", [0, 1, 4, 5], [2, 3]), ("broadcast", [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5])],
)
def test_episodes_go_to_each_server_in_turn_or_all_steps_to_all(spread, way, first, second):
    writer = SpreadWriter(spread.writers, way=way)
    for begin in (0, 2, 4):
        writer.put(batch(begin, 2, start=True, end=0))
    wait_until(lambda: spread.stored(0) == first)
    wait_until(lambda: spread.stored(1) == second)
