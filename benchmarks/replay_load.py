"""What is measured of a replay: steps that writers append, and items that a sampler draws."""

import itertools
import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from processes import kill, start_child
from replay_shapes import SHAPES, TABLE, Environments, Shape, steps

from relaax.allocator import keep_memory
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.replay import Replay

START_DEADLINE_S = 60.0

#: Of each writer.
ENVIRONMENTS = 16

#: Consecutive steps of an environment that are appended at once where there is no writer between.
RUN_STEPS = 16

WARM_UP_CALLS = 3


def rate_of(call: Callable[[], int], seconds: float) -> float:
    """Return how many items a second ``call``, which returns its own number of them, reaches."""
    for _ in range(WARM_UP_CALLS):
        call()
    began, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        count += call()
    return count / spent


def copying(items: int, item_bytes: int) -> Callable[[], int]:
    """Return a call that copies the bytes of so many items, into memory that is there already."""
    source = np.ones(items * item_bytes, np.uint8)
    target = np.ones_like(source)

    def copy() -> int:
        np.copyto(target, source)
        return items

    return copy


def storing(replay: Replay) -> Callable[[], int]:
    """Return a call that stores a run of each environment in this process."""
    writer = "benchmark"
    replay.open_writer(writer, replay.schema)
    rows, flags = steps(replay.schema, RUN_STEPS, np.random.default_rng(5), first=1)
    next_steps = [0] * ENVIRONMENTS

    def store() -> int:
        for environment, first in enumerate(next_steps):
            next_steps[environment] = replay.append(writer, environment, first, rows, flags)
        return ENVIRONMENTS * RUN_STEPS

    return store


def drawing(replay: Replay, batch: int) -> Callable[[], int]:
    """Return a call that draws a batch in this process."""
    return lambda: len(replay.sample(TABLE, batch, 0.0).keys)


class Sampler:
    """Draws batches from some servers, one after the other."""

    def __init__(self, urls: Sequence[str], batch: int, shares_memory: bool) -> None:
        self._stubs = [ReplayStub(url, shares_memory=shares_memory) for url in urls]
        self._next = itertools.cycle(self._stubs)
        self._batch = batch
        for _ in range(2 * len(self._stubs)):  # the first sample of each is sent
            self.sample()

    def sample(self) -> int:
        """Draw a batch; return how many items it has."""
        return len(next(self._next).sample(TABLE, self._batch, 1.0).keys)

    def close(self) -> None:
        """Close all connections."""
        for stub in self._stubs:
            stub.close()


def append_rate(urls: Sequence[str], shape: Shape, writers: int, seconds: float) -> float:
    """Return how many steps a second writers append, each a process that writes to one server."""
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    pipes, processes = [], []
    try:
        for url in itertools.islice(itertools.cycle(urls), writers):
            ours, theirs = context.Pipe()
            processes.append(start_child(context, write, url, shape.name, seconds, start, theirs))
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            if not pipe.poll(START_DEADLINE_S):
                raise RuntimeError("a writer did not start")
            pipe.recv()
        start.set()
        reports = np.array([pipe.recv() for pipe in pipes])
    finally:
        kill(processes)
    counts, begins, ends = reports.T
    return float(counts.sum() / (ends.max() - begins.min()))


def write(url: str, shape: str, seconds: float, start: Any, pipe: Any) -> None:
    """Put steps until ``seconds`` are over; report how many were acknowledged, and when."""
    keep_memory()  # as workers do
    schema = SHAPES[shape].schema
    writer = ReplayWriter(ReplayStub(url), schema)
    environments = Environments(schema, ENVIRONMENTS)
    writer.put(environments.step())
    pipe.send("ready")
    start.wait()
    count = -writer.waiting
    began = time.monotonic()
    while (now := time.monotonic()) - began < seconds:
        writer.put(environments.step())
        count += ENVIRONMENTS
    pipe.send((count - writer.waiting, began, now))
    writer.close()
