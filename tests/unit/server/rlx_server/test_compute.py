"""The compute process' loop, on a thread, with the ends that workers hold: who gets what."""

import contextlib
import os
import resource
import socket
import sys
import threading

import numpy as np
import pytest

from relaax.algorithm_base import BatchAgentBase, InvalidState, Metrics, PreprocessorBase
from relaax.errors import ComputeError
from relaax.learning.slots import SlotPool
from relaax.server.rlx_server.compute.exchange import Exchange, Layout
from relaax.server.rlx_server.compute.link import Link, socket_pair
from relaax.server.rlx_server.compute.process import READY, ComputeLoop
from relaax.server.rlx_server.compute.remote_agents import RemoteAgents
from relaax.steps import ENDED, FINAL, START, TERMINATED, TRUNCATED, Steps, wants_action


class Stored(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y, x))


class Identity(PreprocessorBase):
    def __init__(self):
        pass

    def observe(self, environments, starts, states):
        return np.asarray(states)


class Oracle(BatchAgentBase):
    """Answers each environment with its slot and what it sees; keeps what each reported."""

    def __init__(self):
        self.pool = SlotPool()
        self.reported = {}
        self.sizes = []
        self.warmed = []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.is_full = False

    def warm_up(self, environments):
        self.warmed.append(environments)

    def action_type(self):
        return np.dtype(np.float64), (2,)

    def open(self, environments):
        if self.is_full:
            raise MemoryError("36 GiB")
        return self.pool.take(environments)

    def close_slots(self, slots):
        self.pool.give_back(slots)

    def act(self, steps):
        assert self.goes_on.wait(20)
        acting = steps.environments[wants_action(steps.flags)]
        self.sizes.append(len(acting))
        finals = iter(np.asarray(steps.finals).tolist())
        for slot, flags, reward in zip(steps.environments, steps.flags, steps.rewards, strict=True):
            final = next(finals) if flags & FINAL else None
            self.reported.setdefault(int(slot), []).append((int(flags), float(reward), final))
        seen = np.asarray(steps.observations).reshape(len(acting), -1)[:, 0] if len(acting) else []
        return np.stack([acting, seen], axis=1) if len(acting) else np.zeros((0, 2))

    def close(self):
        pass


class Compute:
    """The loop on a thread, and what an RLX server and its workers hold of it."""

    def __init__(self):
        self.agent = Oracle()
        self.metrics = Stored()
        self.introductions, self._introduced = socket_pair()
        self._rung, self.doorbell = os.pipe()
        loop = ComputeLoop(self.agent, self.metrics, self._introduced, self._rung)
        self._thread = threading.Thread(target=loop.run)
        self._thread.start()
        assert self.introductions.recv(100) == READY
        self.links = []

    def worker(self, environments):
        ours, theirs = socket_pair()
        with theirs:
            socket.send_fds(self.introductions, [b"w"], [theirs.fileno()])
        self.links.append(Link(ours))
        return RemoteAgents(Identity(), self.links[-1], self.doorbell, environments)

    def close(self):
        self.agent.goes_on.set()
        for link in self.links:
            link.close()
        self.introductions.close()
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._introduced.close()
        for end in (self.doorbell, self._rung):
            os.close(end)


@pytest.fixture(name="compute")
def _compute():
    interval = sys.getswitchinterval()
    compute = Compute()
    yield compute
    compute.close()
    sys.setswitchinterval(interval)


def steps(environments, flags, rewards, observations, finals=()):
    return Steps(
        np.array(environments, np.int64),
        np.array(flags, np.uint8),
        np.array(rewards, float),
        np.array(observations, np.float32).reshape(-1, 1),
        np.array(finals, np.float32).reshape(-1, 1),
    )


def test_each_worker_gets_the_answers_to_what_it_asked(compute):
    """Five workers at once, with ends and starts in many places, against what they should see."""
    sizes = (1, 3, 1, 8, 2)
    workers = [compute.worker(size) for size in sizes]
    for worker, size in zip(workers, sizes, strict=True):
        worker.act(steps(range(size), [START] * size, [0] * size, [0] * size))
    slots = [worker._exchange.slots.tolist() for worker in workers]
    all_slots = [slot for mine in slots for slot in mine]
    assert sorted(all_slots) == list(range(sum(sizes)))
    told = {slot: [(START, 0.0, None)] for slot in all_slots}
    errors = []

    def play(number):
        generator = np.random.default_rng(number)
        choices = [0, 0, 0, TERMINATED | START, TRUNCATED | FINAL | START, TERMINATED]
        try:
            for step in range(200):
                play_a_step(number, step, generator.choice(choices, sizes[number]))
        except Exception as error:
            errors.append(error)

    def play_a_step(number, step, flags):
        environments = np.arange(sizes[number])
        rewards = number * 10_000 + step * 10 + environments
        acting, ends_in = wants_action(flags), (flags & FINAL) != 0
        seen, finals = rewards[acting] + 0.5, rewards[ends_in] + 0.25
        found = workers[number].act(steps(environments, flags, rewards, seen, finals))
        mine = np.array(slots[number])
        np.testing.assert_array_equal(found[:, 0], mine[acting])
        np.testing.assert_array_equal(found[:, 1], seen)
        for slot, flag, reward in zip(mine, flags, rewards, strict=True):
            final = [reward + 0.25] if flag & FINAL else None
            told[slot].append((flag, reward, final))
        idle = environments[(flags & ENDED != 0) & (flags & START == 0)]
        if len(idle):
            count = len(idle)
            workers[number].act(steps(idle, [START] * count, [0] * count, [0] * count))
            for slot in mine[idle]:
                told[slot].append((START, 0.0, None))

    threads = [threading.Thread(target=play, args=(number,)) for number in range(len(sizes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert compute.agent.reported == told
    assert max(compute.agent.sizes) > max(sizes), "they were answered together"


def test_the_memory_between_holds_messages_of_every_kind_in_turn():
    layout = Layout(3, "<f4", (1,), "<i8", ())
    descriptor = Exchange.new_memory()
    here, there = Exchange(layout, descriptor), Exchange(layout, descriptor)
    os.close(descriptor)
    plain = steps(range(3), [0] * 3, [1, 2, 3], [4, 5, 6])
    plain = Steps(plain.environments, plain.flags, plain.rewards, plain.observations, (), True)
    ended = steps([1], [TERMINATED | FINAL], [7], [], [8])
    for sent in (plain, plain, ended, plain):
        here.write(sent)
        entries, observations, finals, _ = there.read()
        np.testing.assert_array_equal(entries["slot"], sent.environments)
        np.testing.assert_array_equal(entries["flags"], sent.flags)
        np.testing.assert_array_equal(entries["reward"], sent.rewards)
        np.testing.assert_array_equal(observations, sent.observations)
        np.testing.assert_array_equal(finals.reshape(-1), np.reshape(sent.finals, -1))


def test_another_kind_of_observations_may_come_when_nobody_else_is_there(compute):
    first = compute.worker(1)
    first.act(steps([0], [START], [0], [1]))
    pictures = Steps(
        np.zeros(1, np.int64), np.array([START], np.uint8), np.zeros(1),
        np.zeros((1, 2), np.uint8), (),
    )  # fmt: skip
    with pytest.raises(InvalidState, match=r"are uint8\[2\], those of others here float32\[1\]"):
        compute.worker(1).act(pictures)
    compute.links[0].close()
    for _ in range(100):
        with contextlib.suppress(InvalidState):
            assert len(compute.worker(1).act(pictures)) == 1
            return
    raise AssertionError("nobody else is there")


def test_who_finds_no_room_is_refused_and_nobody_else(compute):
    first = compute.worker(1)
    first.act(steps([0], [START], [0], [1]))
    compute.agent.is_full = True
    with pytest.raises(ComputeError, match="no room for 60000 more environments"):
        compute.worker(60_000).act(steps([0], [START], [0], [1]))
    compute.agent.is_full = False
    assert len(first.act(steps([0], [0], [1], [1]))) == 1


def test_who_finds_no_file_descriptor_is_refused_and_nobody_else(compute):
    first, second = compute.worker(1), compute.worker(4)
    first.act(steps([0], [START], [0], [1]))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        with pytest.raises(ComputeError, match="no room for 4 more"):
            second.act(steps([0], [START], [0], [1]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(first.act(steps([0], [0], [1], [1]))) == 1
    assert compute.agent.pool.take(1).tolist() == [1], "what was taken for the second is free again"


def test_a_connection_of_very_many_environments_is_served(compute):
    """More than fit as numbers into one packet of the link; the network is warmed up for them."""
    count = 65_535
    worker = compute.worker(count)
    found = worker.act(steps(range(count), [START] * count, [0] * count, range(count)))
    np.testing.assert_array_equal(found[:, 1], np.arange(count))
    assert compute.agent.warmed == [128, count]


def test_without_a_compute_process_acting_fails_with_the_reason_and_closing_does_not(compute):
    worker = compute.worker(1)
    worker.act(steps([0], [START], [0], [1]))
    worker.metrics().scalar("of a client", 1.0)
    reader, writer = os.pipe()
    os.close(reader)
    worker._doorbell = writer
    with pytest.raises(ComputeError, match="the compute process is gone"):
        worker.act(steps([0], [0], [1], [1]))
    os.close(writer)
    compute.introductions.shutdown(socket.SHUT_RDWR)
    compute.links[0]._socket.shutdown(socket.SHUT_RDWR)
    worker.close()


def test_metrics_arrive_however_long_their_names_and_block_nobody(compute):
    worker = compute.worker(1)
    worker.act(steps([0], [START], [0], [1]))
    name = "\N{SNOWMAN}" * 255
    for y in range(100):
        worker.metrics().scalar(name, y, 7.0)
    expected = [(name, float(y), 7.0) for y in range(100)]
    for _ in range(2000):  # they come beside the observations, in their own time
        worker.act(steps([0], [0], [1], [1]))
        mine = [value for value in compute.metrics.values if value[0] == name]
        if mine == expected:
            break
        threading.Event().wait(0.005)
    assert mine == expected
    compute.agent.goes_on.clear()
    waiting = threading.Thread(target=worker.act, args=(steps([0], [0], [1], [1]),))
    waiting.start()
    for y in range(20_000):  # far more than the way there holds
        worker.metrics().scalar(name, y)
    compute.agent.goes_on.set()
    waiting.join(20)
    assert not waiting.is_alive()


def test_what_is_measured_says_how_many_waited_and_how_long(compute, monkeypatch):
    worker = compute.worker(3)
    worker.act(steps(range(3), [START] * 3, [0] * 3, [0] * 3))
    for _ in range(3000):
        worker.act(steps(range(3), [0] * 3, [0] * 3, [0] * 3))
        if compute.metrics.values:
            break
        threading.Event().wait(0.001)
    stored = {name: y for name, y, _ in compute.metrics.values}
    assert stored["inference batch size min"] == stored["inference batch size max"] == 3
    for name in ("inference queue wait", "inference time"):
        assert 0 <= stored[f"{name} min"] <= stored[f"{name} p50"] <= stored[f"{name} p99"]
        assert stored[f"{name} p99"] <= stored[f"{name} max"] < 20
