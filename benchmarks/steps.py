"""The global step of a training, and how many of its rollouts were dropped."""

import contextlib
import math
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from event_files import EventFiles
from processes import kill, start_child

START_DEADLINE_S = 60.0

#: Seconds between two readings while the global step is awaited.
_LOOK_INTERVAL_S = 0.005

#: TensorBoard's tag for the metric "learner/rollouts dropped".
_DROPPED = "learner/rollouts_dropped"


@dataclass(frozen=True)
class Reading:
    """The global step at a moment."""

    steps: int
    #: time.monotonic(), the same for all processes.
    at_s: float
    #: Seconds since the epoch, as in event files.
    wall_s: float


class GlobalStep:
    """Reads the global step through a process that is connected to the parameter server."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def now(self) -> Reading:
        """Return the global step."""
        return self._ask(waits=False)

    def at_next_change(self) -> Reading:
        """Wait until an update has counted steps, and return the global step."""
        return self._ask(waits=True)

    def _ask(self, waits: bool) -> Reading:
        self._pipe.send(waits)
        reading: Reading = self._pipe.recv()
        return reading


@contextlib.contextmanager
def global_step(parameter_server_url: str) -> Iterator[GlobalStep]:
    """Connect to a parameter server in a process of its own: gRPC does not survive a fork."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = start_child(context, _answer, parameter_server_url, theirs)
    theirs.close()
    try:
        if not ours.poll(START_DEADLINE_S):
            raise RuntimeError(f"no parameter server answers at {parameter_server_url}")
        ours.recv()
        yield GlobalStep(ours)
    finally:
        kill([child])


def _answer(parameter_server_url: str, pipe: Any) -> None:
    from relaax.parameters import Bridge

    bridge = Bridge(parameter_server_url)

    def read() -> Reading:
        return Reading(bridge.add(0), time.monotonic(), time.time())

    pipe.send(read())
    while True:
        waits = pipe.recv()
        reading = before = read()
        while waits and reading.steps == before.steps:
            time.sleep(_LOOK_INTERVAL_S)
            reading = read()
        pipe.send(reading)


def dropped_rollouts(
    metrics: Path, begin_wall_s: float = -math.inf, end_wall_s: float = math.inf
) -> int:
    """Return how many rollouts were reported as dropped, after the parameter server has ended.

    A report reaches it within half a second.
    """
    counts: Iterator[float] = (
        value.simple_value
        for event in EventFiles(metrics).new()
        for value in event.summary.value
        if value.tag == _DROPPED and begin_wall_s < event.wall_time <= end_wall_s
    )
    return round(sum(counts))
