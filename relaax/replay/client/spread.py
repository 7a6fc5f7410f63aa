"""Sends the steps of each environment to one of several replay servers."""

import os
import secrets
import socket
from collections.abc import Callable, Sequence
from time import monotonic

import numpy as np
import numpy.typing as npt

from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import CLOSE_DEADLINE_S, ReplayWriter, Types
from relaax.replay.schema import Schema
from relaax.replay.specs import MOST_WAITING
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START
from relaax.telemetry.metrics import Metrics, WaitReport

IntArray = npt.NDArray[np.int64]


class SpreadWriter:
    """An ``ExperienceSink`` of steps with a ``ReplayWriter`` for each server, which it owns.

    Environment e belongs to server (``first`` + e) modulo their number, and stays there. If that
    server does not answer at the begin of an episode, the episode goes to the next server that
    does. If steps are dropped in the middle of an episode, it continues at another server.
    """

    def __init__(self, writers: Sequence[ReplayWriter], first: int = 0) -> None:
        self._writers = writers
        self._first = first
        #: int64 [environments]: where the present episode of each goes.
        self._servers: IntArray = np.zeros(0, np.int64)

    @property
    def dropped(self) -> int:
        """How many steps were dropped so far."""
        return sum(writer.dropped for writer in self._writers)

    def warm_up(self) -> None:
        """Do nothing."""

    def stored_types(self, types: Types) -> Types:
        """Return the types of columns by name that are stored: ``types`` where they were open.

        All writers ask the servers in one order, so that they agree.
        """
        for writer in self._writers:
            types = writer.stored_types(types)
        return types

    def put(self, steps: StepBatch) -> None:
        """Queue ``steps`` for the servers of their environments; see ``ReplayWriter.put``."""
        servers = self._of(steps)
        for number in np.unique(servers):
            mine = servers == number
            part = steps if mine.all() else steps.chosen(mine)
            self._writers[number].put(part)

    def close(self) -> None:
        """Send waiting steps, up to a deadline, and end the threads."""
        for writer in self._writers:
            writer.finish()
        until = monotonic() + CLOSE_DEADLINE_S
        for writer in self._writers:
            writer.close(until)

    def _of(self, steps: StepBatch) -> IntArray:
        """Return the servers int64 [N] of steps."""
        self._grow(int(steps.slots.max()) + 1)
        self._leave_those_that_give_up(steps.slots)
        servers = self._servers[steps.slots]
        for place in np.flatnonzero(steps.flags & START):
            slot = steps.slots[place]
            self._servers[slot] = self._answering(self._home(int(slot)))
            servers[place:][steps.slots[place:] == slot] = self._servers[slot]
        return servers

    def _leave_those_that_give_up(self, slots: IntArray) -> None:
        """Let episodes go on elsewhere, if anywhere, where their server takes no more steps."""
        gone = [writer.gives_up for writer in self._writers]
        if not any(gone):
            return
        for slot in np.unique(slots).tolist():
            before, after = self._servers[slot], self._answering(self._home(slot))
            if gone[before] and before != after:
                self._servers[slot] = after
                self._writers[after].interrupt(slot)

    def _answering(self, home: int) -> int:
        """Return ``home``, or the next server that answers; ``home`` if all are away."""
        count = len(self._writers)
        order = ((home + offset) % count for offset in range(count))
        return next((number for number in order if not self._writers[number].is_away), home)

    def _home(self, slot: int) -> int:
        return (self._first + slot) % len(self._writers)

    def _grow(self, count: int) -> None:
        known = len(self._servers)
        if count > known:
            homes = np.array([self._home(slot) for slot in range(known, count)])
            self._servers = np.concatenate([self._servers, homes])


def writer_to(
    urls: Sequence[str],
    schema: Schema,
    metrics: Metrics,
    first: int = 0,
    drops: bool = False,
    stops: Callable[[], bool] = lambda: False,
    on_wait: Callable[[], object] = lambda: None,
    on_delivered: Callable[[int], object] = lambda actions: None,
    on_actions_dropped: Callable[[int], object] = lambda actions: None,
    most_waiting: int = MOST_WAITING,
) -> SpreadWriter:
    """Return a sink that delivers steps to a learner, or to replay servers.

    Dropped steps and waits for the server are metrics. See ``ReplayWriter`` for the others.
    """
    process = f"process {os.getpid()} of {socket.gethostname()}"
    waits = WaitReport(metrics, process)

    def delivered(actions: int) -> None:
        waits.note("")
        on_delivered(actions)

    writers = [
        ReplayWriter(
            ReplayStub(url),
            schema,
            most_waiting=most_waiting,
            drops=drops,
            stops=stops,
            on_wait=on_wait,
            on_dropped=lambda steps: metrics.scalar("actor/steps dropped", steps),
            on_delivered=delivered,
            on_actions_dropped=on_actions_dropped,
            on_refused=waits.note,
            name=f"{process}, {secrets.token_hex(16)}",
        )
        for url in urls
    ]
    return SpreadWriter(writers, first)
