"""What is measured of a replay: steps that writers append, and items that a sampler draws."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from processes import kill, start_child
from replay_shapes import SHAPES, TABLE, Environments, Shape, steps

from relaax.processes.allocator import keep_memory
from relaax.replay.client.sampler import ShardedSampler
from relaax.replay.client.spread import SpreadWriter
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.replay import Replay

START_DEADLINE_S = 60.0

#: Of each writer.
ENVIRONMENTS = 16

#: Consecutive steps of an environment that are appended at once where there is no writer between.
RUN_STEPS = 16

#: For one batch of replay servers.
DRAW_DEADLINE_S = 30.0

#: Enough for each server: the first samples of each are sent.
WARM_UP_CALLS = 5


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


def drawing_from(sampler: ShardedSampler, batch: int) -> Callable[[], int]:
    """Return a call that draws a batch from replay servers."""
    return lambda: len(sampler.sample(TABLE, batch, DRAW_DEADLINE_S).keys)


def append_rate(urls: Sequence[str], shape: Shape, writers: int, seconds: float) -> float:
    """Return how many steps a second writers append, each a process that writes to all servers."""
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    pipes, processes = [], []
    try:
        for number in range(writers):
            ours, theirs = context.Pipe()
            task = (urls, number, shape.name, seconds, start, theirs)
            processes.append(start_child(context, write, *task))
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


def write(
    urls: Sequence[str], number: int, shape: str, seconds: float, start: Any, pipe: Any
) -> None:
    """Put steps until ``seconds`` are over; report how many were acknowledged, and when."""
    keep_memory()  # as workers do
    schema = SHAPES[shape].schema
    writers = [ReplayWriter(ReplayStub(url), schema) for url in urls]
    with closing(SpreadWriter(writers, first=number)) as writer:
        environments = Environments(schema, ENVIRONMENTS)
        writer.put(environments.step())
        pipe.send("ready")
        start.wait()
        count = -sum(each.waiting for each in writers)
        began = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            writer.put(environments.step())
            count += ENVIRONMENTS
        pipe.send((count - sum(each.waiting for each in writers), began, now))
