"""A batch of several replay servers is as one of a single table, whichever of them answer."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from replay_cases import SCHEMA, steps
from replay_servers import ServedReplay, wait_until
from scipy import stats

from relaax.errors import ConfigurationError
from relaax.replay.client import watched_server as watched_server_module
from relaax.replay.client.sampler import Samplers, ShardedSampler
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.watched_server import WatchedServer
from relaax.replay.limiter import Limiter
from relaax.replay.replay import NotReady
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import MixedSpec, ReplaySpec, TableSpec
from relaax.replay.storage import FINAL, TERMINATED
from relaax.replay.views import Transitions, Windows
from relaax.telemetry.metrics import Metrics


def spec_of(selector="uniform", limiter=None, view=None, schema=SCHEMA, capacity=4096):
    table = TableSpec(view or Transitions(), selector, limiter or Limiter(), alpha=1.0)
    return ReplaySpec(schema, capacity, {"all": table})


class Shards:
    """Servers of a spec, and a sampler of all of them."""

    def __init__(self, count=2, spec=None, served=None):
        self.spec = spec or spec_of()
        self.servers = [self._serve() for _ in range(count)]
        self.written = [0] * count
        urls = [server.url for server in self.servers]
        random = np.random.default_rng(1)
        self.sampler = ShardedSampler(urls, "all", served or self.spec, random, call_timeout_s=1.0)

    def _serve(self, port=0, contents=None):
        replay = self.spec.make(np.random.default_rng(port), 60.0)
        if contents is not None:
            replay.restore(contents)
        replay.open_writer("w", SCHEMA)
        return ServedReplay(replay, port)

    def write(self, number, first, count, end=TERMINATED):
        """Let a server store an episode of ``count`` transitions."""
        rows, flags = steps(first, count, end=end)
        self.written[number] = self.servers[number].replay.append(
            "w", 0, self.written[number], rows, flags
        )

    def restart(self, number, contents=None):
        server = self.servers[number]
        self.servers[number] = self._serve(server.port, contents)
        if contents is None:
            self.written[number] = 0

    def numbers(self, count, timeout_s=5.0):
        return self.sampler.sample("all", count, timeout_s).columns["action"]

    def wait_for_items(self, *items):
        """Wait until the sampler knows that the servers have so many."""
        wait_until(lambda: [server.weight for server in self.sampler.servers] == list(items))

    def stats(self, number):
        return self.servers[number].replay.stats()

    def close(self):
        self.sampler.close()
        for server in self.servers:
            server.stop()


@pytest.fixture(autouse=True)
def _asked_often(monkeypatch):
    """A sampler asks its servers more often than it does, and so what a test waits for comes."""
    monkeypatch.setattr(watched_server_module, "REFRESH_S", 0.05)
    monkeypatch.setattr(watched_server_module, "WATCH_S", 0.1)


@pytest.fixture(name="shards")
def _shards(request):
    shards = Shards(**getattr(request, "param", {}))
    yield shards
    shards.close()


def test_every_item_of_all_servers_is_as_probable_as_every_other(shards):
    shards.write(0, 0, 30)
    shards.write(1, 1000, 90)
    shards.wait_for_items(30, 90)
    sample = shards.sampler.sample("all", 2400, 5.0)
    numbers = sample.columns["action"]
    assert abs(int((numbers < 1000).sum()) - 600) <= 1  # a quarter of the items, and of the draws
    counts = np.concatenate(
        [np.bincount(numbers[numbers < 1000], minlength=30),
         np.bincount(numbers[numbers >= 1000] - 1000, minlength=90)]
    )  # fmt: skip
    assert stats.chisquare(counts).pvalue > 0.001
    np.testing.assert_allclose(sample.probabilities, 1 / 120)
    assert sample.items == 120
    assert sample.least_probability == pytest.approx(1 / 120)


@pytest.mark.parametrize("shards", [{"spec": spec_of("prioritized")}], indirect=True)
def test_priorities_count_over_all_servers_and_go_back_to_the_server_of_their_item(shards):
    shards.write(0, 0, 2)
    shards.write(1, 1000, 2)
    shards.wait_for_items(2, 2)
    sample = shards.sampler.sample("all", 64, 5.0)
    priorities = {0: 1.0, 1: 2.0, 1000: 5.0, 1001: 8.0}
    given = np.array([priorities[number] for number in sample.columns["action"].tolist()])
    assert shards.sampler.update_priorities("all", sample.keys, given) == 0
    shards.wait_for_items(3, 13)
    again = shards.sampler.sample("all", 1600, 5.0)
    expected = {number: priority / 16 for number, priority in priorities.items()}
    for number, probability in zip(again.columns["action"], again.probabilities, strict=True):
        assert probability == pytest.approx(expected[int(number)])
    counts = [int((again.columns["action"] == number).sum()) for number in expected]
    np.testing.assert_allclose(counts, [100, 200, 500, 800], atol=2)  # drawn in equal parts
    assert again.least_probability == pytest.approx(1 / 16)


def test_a_server_without_items_delays_nothing(shards):
    shards.write(1, 0, 10)
    assert len(shards.numbers(32)) == 32
    assert shards.stats(0)["all/drawn"] == 0


def test_nothing_is_drawn_while_all_are_empty_and_each_server_says_why(shards):
    def says_why():
        with pytest.raises(NotReady) as refused:
            shards.sampler.sample("all", 8, 0.05)
        return str(refused.value).count("0 of the 1 items with which learning begins have c") == 2

    wait_until(says_why)


def test_servers_that_promise_items_and_give_none_are_not_asked_for_ever(shards, monkeypatch):
    def give_none(*_):
        raise NotReady("they are gone")

    shards.write(0, 0, 10)
    shards.wait_for_items(10, 0)
    monkeypatch.setattr(ReplayStub, "sample", give_none)
    for timeout_s in (0.0, 0.3):
        with pytest.raises(NotReady, match=r"127.0.0.1:\d+: they are gone"):
            shards.sampler.sample("all", 8, timeout_s)


RATIO = spec_of(limiter=Limiter(min_items=1, samples_per_insert=2.0, error_buffer=4.0))


@pytest.mark.parametrize("shards", [{"spec": RATIO}], indirect=True)
def test_the_ratio_holds_for_all_servers_together_however_steps_are_divided(shards):
    shards.write(0, 0, 40)
    shards.write(1, 1000, 8)
    shards.wait_for_items(40, 8)
    drawn = 0
    while True:
        try:
            drawn += len(shards.numbers(8, 1.0))
        except NotReady:
            break
    # Of each: (items - 1) * 2 + 4.
    assert drawn == (39 * 2 + 4 + 7 * 2 + 4) // 8 * 8
    # What was allowed and is less than a batch has been paid for the next one.
    assert [shards.stats(number)["all/charged"] for number in range(2)] == [82, 18]
    # The draws themselves follow the items.
    assert shards.stats(0)["all/drawn"] == pytest.approx(drawn * 40 / 48, abs=drawn / 8)
    shards.write(1, 2000, 4)
    assert len(shards.numbers(8)) == 8  # one server that gets steps is enough


@pytest.mark.parametrize("shards", [{"spec": RATIO}], indirect=True)
def test_steps_go_on_where_a_batch_costs_more_than_a_server_may_be_ahead(shards):
    taken, first = 0, 0

    def go_on():
        nonlocal taken, first
        with suppress(NotReady):
            taken += len(shards.numbers(64, 0.01))
        with suppress(NotReady):  # the server waits for draws
            shards.write(1, first, 2)
            first += 2
        return taken >= 64

    wait_until(go_on)
    assert 2 * first + 4 >= taken  # the ratio holds


@pytest.mark.parametrize("shards", [{"spec": spec_of("fifo")}], indirect=True)
def test_items_that_are_drawn_once_come_once_from_whichever_server(shards):
    shards.write(0, 0, 10)
    shards.write(1, 1000, 30)
    shards.wait_for_items(10, 30)
    numbers = np.concatenate([shards.numbers(8) for _ in range(5)])
    assert sorted(numbers.tolist()) == [*range(10), *range(1000, 1030)]


@pytest.mark.parametrize("shards", [{"spec": spec_of("fifo")}], indirect=True)
def test_several_threads_draw_all_items_once_and_every_batch_gets_whole(shards, monkeypatch):
    asked, sample = [], ReplayStub.sample
    monkeypatch.setattr(ReplayStub, "sample", lambda *args: (asked.append(args), sample(*args))[1])
    with ThreadPoolExecutor(4) as threads:
        batches = [threads.submit(shards.numbers, 8, 60.0) for _ in range(20)]
        for episode in range(8):  # while they wait: each has an allowance that others want, too
            shards.write(episode % 2, 1000 * episode, 20)
        drawn = [batch.result().tolist() for batch in batches]
    assert [len(batch) for batch in drawn] == [8] * 20
    numbers = sorted(number for batch in drawn for number in batch)
    assert numbers == [1000 * episode + step for episode in range(8) for step in range(20)]
    for _, _, count, _, charge in asked:  # whoever draws what others have paid for lets them wait
        assert count == charge


def test_threads_that_wait_for_items_do_not_wake_one_another(shards, monkeypatch):
    calls, want = [], WatchedServer.want
    monkeypatch.setattr(WatchedServer, "want", lambda *args: (calls.append(args), want(*args)))

    def wait():
        with pytest.raises(NotReady):
            shards.sampler.sample("all", 8, 0.3)

    with ThreadPoolExecutor(3) as threads:
        for waiting in [threads.submit(wait) for _ in range(3)]:
            waiting.result()
    assert 0 < len(calls) < 200


@pytest.mark.parametrize("shards", [{"spec": spec_of(view=Windows(2))}], indirect=True)
def test_windows_of_several_servers_are_joined_beside_each_other(shards):
    shards.write(0, 0, 10)
    shards.write(1, 1000, 10)
    shards.wait_for_items(10, 10)
    sample = shards.sampler.sample("all", 8, 5.0)
    assert sample.columns["action"].shape == (3, 8)
    assert sample.columns["observation"].shape == (3, 8, 2)


def test_a_server_that_dies_is_left_out_and_its_steps_are_counted(shards, caplog):
    shards.write(0, 0, 20)
    shards.write(1, 1000, 10)
    shards.wait_for_items(20, 10)
    shards.servers[0].stop()
    for _ in range(3):
        assert (shards.numbers(16) >= 1000).all()
    assert "20 steps of it cannot be drawn" in caplog.text
    shards.restart(0)
    wait_until(lambda: shards.sampler.lost == 20)
    shards.write(0, 500, 10)
    shards.wait_for_items(10, 10)
    assert (shards.numbers(16) < 1000).any()


def test_a_restored_server_loses_unsaved_steps(shards):
    shards.write(0, 0, 20)
    shards.write(1, 1000, 10)
    saved = shards.servers[0].replay.contents()
    shards.write(0, 100, 5)
    shards.wait_for_items(25, 10)
    shards.servers[0].stop()
    shards.restart(0, saved)
    wait_until(lambda: shards.sampler.lost == 5)
    shards.wait_for_items(20, 10)


@pytest.mark.parametrize("shards", [{"spec": spec_of(capacity=128)}], indirect=True)
def test_the_loss_of_a_full_server_is_counted_though_it_is_full_again(shards):
    def write(episodes):
        for _ in range(episodes):
            shards.write(0, 0, 63, end=FINAL)  # a block of 64 steps, of which 63 are actions

    def restart_after(actions, contents):
        wait_until(lambda: shards.sampler.actions == actions)
        shards.servers[0].stop()
        shards.restart(0, contents)

    write(4)
    saved = shards.servers[0].replay.contents()
    write(1)
    restart_after(5 * 63, saved)
    wait_until(lambda: shards.sampler.lost == 63)
    assert shards.sampler.servers[0].steps == 128
    write(3)
    restart_after(8 * 63, saved)
    wait_until(lambda: shards.sampler.lost == 63 + 128)  # no more than it held
    restart_after(8 * 63, None)
    wait_until(lambda: shards.sampler.lost == 63 + 2 * 128)  # it starts empty


@pytest.mark.parametrize("shards", [{"spec": spec_of("prioritized")}], indirect=True)
def test_priorities_for_a_server_that_died_or_started_again_are_counted_as_gone(shards):
    shards.write(0, 0, 5)
    shards.wait_for_items(5, 0)
    keys = shards.sampler.sample("all", 4, 5.0).keys
    shards.servers[0].stop()
    assert shards.sampler.update_priorities("all", keys, np.ones(4)) == 4
    shards.restart(0)
    shards.write(0, 0, 5)  # the same rows, with the same keys at the server
    assert shards.sampler.update_priorities("all", keys, np.full(4, 7.0)) == 4
    shards.wait_for_items(5, 0)
    assert shards.sampler.update_priorities("all", keys, np.full(4, 7.0)) == 4


def test_items_drawn_before_a_server_died_are_part_of_the_next_batch(shards):
    shards.write(0, 0, 10)
    shards.write(1, 1000, 10)
    shards.wait_for_items(10, 10)
    shards.servers[0].stop()
    shards.servers[1].stop()
    with pytest.raises(NotReady):
        shards.sampler.sample("all", 16, 0.2)
    shards.restart(1)
    shards.write(1, 1000, 10)
    assert len(shards.numbers(16)) == 16


@pytest.mark.parametrize(
    ("served", "reason"),
    [
        (
            spec_of(schema=Schema({**SCHEMA.columns, "reward": Column(np.dtype(np.float64))})),
            r"127.0.0.1:\d+: column 'reward' is float32 \[\], and must be float64 \[\]",
        ),
        (spec_of(view=Transitions(3)), r"table 'all' is Transitions\(steps=1.*, and must be .*=3"),
    ],
)
def test_a_server_that_stores_something_else_is_refused_by_name(served, reason):
    shards = Shards(served=served)
    try:
        with pytest.raises(ConfigurationError, match=reason):
            shards.sampler.sample("all", 8, 5.0)
    finally:
        shards.close()


def test_how_the_servers_are_is_reported(shards):
    class Stored(Metrics):
        def __init__(self):
            self.values = {}

        def scalar(self, name, y, x=None):
            self.values[name] = y

    shards.write(0, 0, 20)
    shards.write(1, 1000, 10)
    shards.wait_for_items(20, 10)
    shards.servers[1].stop()
    wait_until(lambda: shards.sampler.servers[1].is_away)
    stored = Stored()
    shards.sampler.report(stored)
    assert stored.values == {
        "replay/servers away": 1,
        "replay/steps within reach": 20,
        "replay/steps lost": 0,
        "replay/priorities of gone items": 0,
    }
    assert shards.sampler.actions == 30


MIXED = ReplaySpec(
    SCHEMA,
    4096,
    {
        "newest": TableSpec(Transitions(), "lifo"),
        "all": TableSpec(Transitions(), "prioritized"),
        "mixed": MixedSpec({"newest": 0.25, "all": 0.75}),
    },
)


@pytest.mark.parametrize("shards", [{"spec": MIXED}], indirect=True)
def test_a_mixed_batch_has_its_fractions_over_all_servers(shards):
    shards.write(0, 0, 40)
    shards.write(1, 1000, 40)
    shards.wait_for_items(40, 40)
    urls = [server.url for server in shards.servers]
    sampler = Samplers(urls, ["mixed"], MIXED, np.random.default_rng(2))
    try:
        for of_a_table in sampler.by_table.values():
            wait_until(lambda one=of_a_table: one.actions == 80)
        sample = sampler.sample("mixed", 16, 5.0)
        assert sample.columns["source"].tolist() == [0] * 4 + [1] * 12
        assert sample.items == 160
        assert len(set(sample.columns["action"][:4].tolist())) == 4  # each once
        assert sampler.update_priorities("mixed", sample.keys, np.ones(16)) == 0
        assert sampler.first.actions == 80
    finally:
        sampler.close()


QUEUE = ReplaySpec(
    SCHEMA, 4096, {"all": TableSpec(Transitions(), "fifo", Limiter(min_items=4, max_items=32))}
)


@pytest.mark.parametrize("shards", [{"spec": QUEUE}], indirect=True)
def test_a_batch_of_queues_is_drawn_in_parts_where_no_server_has_a_whole_one(shards):
    """Each of two servers holds 32 items at most; the batch has 60."""
    shards.write(0, 0, 30)
    shards.write(1, 1000, 20)
    shards.wait_for_items(30, 20)
    with pytest.raises(NotReady):
        shards.sampler.sample("all", 60, 0.2)
    shards.write(1, 2000, 20)
    sample = shards.sampler.sample("all", 60, 5.0)
    assert len(set(sample.columns["action"].tolist())) == 60


def test_priorities_that_are_no_numbers_are_refused_and_no_server_is_away(shards):
    shards.write(0, 0, 30)
    shards.wait_for_items(30, 0)
    sample = shards.sampler.sample("all", 8, 5.0)
    with pytest.raises(ValueError, match="finite"):
        shards.sampler.update_priorities("all", sample.keys, np.full(8, np.nan))
    assert not any(server.is_away for server in shards.sampler.servers)


@pytest.mark.parametrize("shards", [{"spec": QUEUE}], indirect=True)
def test_a_batch_that_waits_for_its_items_is_not_given_for_one_of_another_size(shards):
    shards.write(0, 0, 30)
    shards.wait_for_items(30, 0)
    with pytest.raises(NotReady):
        shards.sampler.sample("all", 60, 0.2)
    shards.write(1, 1000, 20)
    assert len(shards.sampler.sample("all", 10, 5.0).keys) == 10
