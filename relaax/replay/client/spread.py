"""Sends the steps of each environment to one of several replay servers."""

import os
import secrets
import socket
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.errors import ConfigurationError
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import CLOSE_DEADLINE_S, ReplayWriter, Types, WriterObserver
from relaax.replay.specs import ReplaySpec
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START
from relaax.telemetry.metrics import Metrics, WaitReport

IntArray = npt.NDArray[np.int64]


#: Where steps go of several servers: by environment, by episodes in turn, or to all.
Spread: TypeAlias = Literal["environment", "round-robin", "broadcast"]


class SpreadWriter:
    """An ``ExperienceSink`` of steps with a ``ReplayWriter`` for each server, which it owns.

    Environment e belongs to server (``first`` + e) modulo their number, and stays there. If that
    server does not answer at the begin of an episode, the episode goes to the next server that
    does. If steps are dropped in the middle of an episode, it continues at another server. With the
    way ``round-robin`` the next episode of an environment goes to the next server; with
    ``broadcast`` each step goes to all.
    """

    def __init__(
        self, writers: Sequence[ReplayWriter], first: int = 0, way: Spread = "environment"
    ) -> None:
        self._writers = writers
        self._first = first
        self._way = way
        #: By environment: how many episodes have begun, where these go in turns.
        self._turns: Counter[int] = Counter()
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
        if self._way == "broadcast":
            for writer in self._writers:
                writer.put(steps)
            return
        servers = self._of(steps)
        for number in np.unique(servers):
            mine = servers == number
            part = steps if mine.all() else steps.chosen(mine)
            self._writers[number].put(part)

    def admits(self, slots: Sequence[int], version: int) -> bool:
        """See ``ReplayWriter.admits``; rollouts are counted by one server."""
        return self._writers[0].admits(slots, version)

    def release(self, slots: Sequence[int]) -> None:
        """See ``ReplayWriter.release``."""
        self._writers[0].release(slots)

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
            self._servers[slot] = self._answering(self._next_home(int(slot)))
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

    def _next_home(self, slot: int) -> int:
        """Return the server of the episode that begins."""
        if self._way != "round-robin":
            return self._home(slot)
        self._turns[slot] += 1
        return (self._home(slot) + self._turns[slot] - 1) % len(self._writers)

    def _home(self, slot: int) -> int:
        return (self._first + slot) % len(self._writers)

    def _grow(self, count: int) -> None:
        known = len(self._servers)
        if count > known:
            homes = np.array([self._home(slot) for slot in range(known, count)])
            self._servers = np.concatenate([self._servers, homes])


class StepReports(WriterObserver):
    """Makes dropped steps, and waits for the servers, metrics of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._waits = WaitReport(metrics, _this_process())

    def delivered(self, actions: int) -> None:
        """See WriterObserver."""
        self._waits.note("")

    def dropped(self, steps: int) -> None:
        """See WriterObserver."""
        self._metrics.scalar("actor/steps dropped", steps)

    def refused(self, reason: str) -> None:
        """See WriterObserver."""
        self._waits.note(reason)


class _Beside(WriterObserver):
    """Hears of further copies of steps, of which the first one is counted as delivered."""

    def __init__(self, observer: WriterObserver) -> None:
        self._observer = observer

    def goes_on(self) -> bool:
        """See WriterObserver."""
        return self._observer.goes_on()

    def dropped(self, steps: int) -> None:
        """See WriterObserver."""
        self._observer.dropped(steps)

    def refused(self, reason: str) -> None:
        """See WriterObserver."""
        self._observer.refused(reason)


def writer_to(
    urls: Sequence[str],
    spec: ReplaySpec,
    observer: WriterObserver,
    first: int = 0,
    drops: bool = False,
    way: Spread = "environment",
    first_timeout_s: float | None = None,
) -> SpreadWriter:
    """Return a sink of steps for a learner, or for replay servers; see ``ReplayWriter``.

    ConfigurationError for several servers where acting is paced by the versions of rollouts.
    """
    rollouts = spec.paced_rollout
    if rollouts is not None and len(urls) > 1:
        raise ConfigurationError(
            "max_staleness counts the rollouts at one server: name one learner or replay server"
        )
    writers = [
        ReplayWriter(
            ReplayStub(url),
            spec.schema,
            observer if way != "broadcast" or not number else _Beside(observer),
            most_waiting=spec.most_waiting,
            drops=drops,
            first_timeout_s=first_timeout_s,
            name=f"{_this_process()}, {secrets.token_hex(16)}",
            rollouts=rollouts,
        )
        for number, url in enumerate(urls)
    ]
    return SpreadWriter(writers, first, way)


def _this_process() -> str:
    return f"process {os.getpid()} of {socket.gethostname()}"
