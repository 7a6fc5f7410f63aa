"""Replay servers in the process of a test."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import grpc
import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.replay.limiter import Limiter
from relaax.replay.replay import Replay
from relaax.replay.selectors import Uniform
from relaax.replay.service import ReplayServicer, method_handlers
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import Storage
from relaax.replay.table import Table
from relaax.replay.views import Transitions
from relaax.replay.writers import Writers


class ServedReplay:
    """A replay at a port of the loopback interface."""

    def __init__(self, replay, port=0, threads=4):
        self.replay = replay
        self._server = grpc.server(ThreadPoolExecutor(threads))
        self._server.add_generic_rpc_handlers((method_handlers(ReplayServicer(replay)),))
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self.url = f"127.0.0.1:{self.port}"
        self._server.start()

    def stop(self):
        self._server.stop(0).wait()


class HeardWriters(Writers):
    """Writers by a clock that stands still, and how often each was heard of."""

    def __init__(self, lease_s):
        self.now, self.heard = 0.0, Counter()
        super().__init__(lease_s, clock=lambda: self.now)

    def hear(self, name):
        super().hear(name)
        self.heard[name] += 1

    def pass_time(self, seconds):
        """Let time pass, and wait until all are heard of."""
        before = dict(self.heard)
        self.now += seconds
        wait_until(lambda: all(self.heard[name] > count for name, count in before.items()))


class Server(ServedReplay):
    """A replay server with one table of transitions."""

    def __init__(self, port=0, limiter=None, capacity=4096, threads=4, schema=SCHEMA, writers=None):
        self.storage = Storage(schema, capacity)
        selector = Uniform(self.storage.capacity, np.random.default_rng(0))
        self.table = Table(self.storage, Transitions(), selector, limiter or Limiter())
        self._late_s = 0.0
        writers = writers or Writers(60, clock=lambda: time.monotonic() + self._late_s)
        super().__init__(Replay(self.storage, {"all": self.table}, writers), port, threads)

    def expire_writers(self):
        """Let the leases of all writers be over."""
        self._late_s += 61
        self.replay.reclaim()

    def stored(self, slot=0):
        """Numbers of the steps in a slot, in their order."""
        rows = np.flatnonzero((self.storage.serials >= 0) & (self.storage.slots == slot))
        rows = rows[np.argsort(self.storage.serials[rows])]
        return self.storage.columns["action"][rows].tolist()


def batch(first, count, slot=0, **ends):
    """Steps of one environment, numbered from ``first`` on."""
    rows, flags = steps(first, count, **ends)
    return StepBatch(np.full(len(flags), slot), flags, rows)


def wait_until(condition, deadline_s=10.0):
    pause = Event()
    for _ in range(int(deadline_s / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("it did not happen")
