"""The bundled clients, each a process of its own, which step as fast as answers come."""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from cells import Cell, Unmeasured
from processes import kill, start_child

from relaax.client import Client, Failure
from relaax.client.vector_client import VectorClient

#: Messages in a row that a client sends before it counts as connected.
FIRST_MESSAGES = 20

#: How long the first answers may take: a worker needs a second or two of a core to start.
START_DEADLINE_S = 120.0
START_DEADLINE_PER_CONNECTION_S = 5.0


@dataclass(frozen=True)
class Window:
    """When steps are measured; time.monotonic(), the same for all processes."""

    begin: float
    end: float

    @classmethod
    def after(cls, warm_up_s: float, seconds: float) -> Self:
        """Return a window of ``seconds`` that begins in ``warm_up_s``."""
        begin = time.monotonic() + warm_up_s
        return cls(begin, begin + seconds)

    def divided(self, count: int) -> list[Self]:
        """Return ``count`` windows of equal length, one after the other."""
        length = self.seconds / count
        begins = [self.begin + length * number for number in range(count)]
        return [type(self)(begin, begin + length) for begin in begins]

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.begin

    def wait_for_begin(self) -> None:
        """Sleep until it begins."""
        time.sleep(max(0.0, self.begin - time.monotonic()))

    def wait_for_end(self) -> None:
        """Sleep until it is over."""
        time.sleep(max(0.0, self.end - time.monotonic()))


@dataclass(frozen=True)
class Figures:
    """What clients reached together."""

    steps_per_s: float
    #: Of a message's latency.
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, latencies: np.ndarray, environments: int, seconds: float) -> Self:
        """Return the figures of messages that were answered within ``seconds``.

        latencies: float64 [M], seconds; each message carries ``environments`` steps. Unmeasured if
        there are no messages.
        """
        if not len(latencies):
            raise Unmeasured(f"no message was answered within {seconds:g} s")
        p50, p99 = np.percentile(latencies, (50, 99)) * 1e3
        return cls(len(latencies) * environments / seconds, float(p50), float(p99))


class Clients:
    """Clients that have got their first actions."""

    def __init__(self, cell: Cell, pipes: list[Any]) -> None:
        self._cell = cell
        self._pipes = pipes

    def play(self, window: Window) -> None:
        """Let all of them step from now to the window's end."""
        for pipe in self._pipes:
            pipe.send(window)

    def figures(self, window: Window) -> Figures:
        """Wait for the window's end, and return the figures of the messages answered within it."""
        (figures,) = self.figures_of([window])
        return figures

    def figures_of(self, windows: Sequence[Window]) -> list[Figures]:
        """Wait for the end, and return the figures of several windows within that of ``play``."""
        times = [received(pipe) for pipe in self._pipes]
        return [
            Figures.of(
                np.concatenate([_within(window, each) for each in times]),
                self._cell.environments,
                window.seconds,
            )
            for window in windows
        ]


@contextlib.contextmanager
def connected_clients(url: str, cell: Cell) -> Iterator[Clients]:
    """Fork the clients of ``cell``; Unmeasured with the reason when one of them is refused."""
    context = multiprocessing.get_context("fork")
    pipes: list[Any] = []
    children = []
    deadline = time.monotonic() + START_DEADLINE_S
    deadline += START_DEADLINE_PER_CONNECTION_S * cell.connections
    try:
        for _ in range(cell.connections):
            ours, theirs = context.Pipe()
            children.append(start_child(context, _run_client, url, cell, theirs))
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            if not pipe.poll(max(0.0, deadline - time.monotonic())):
                raise Unmeasured("a client got no answer in time")
            received(pipe)
        yield Clients(cell, pipes)
    finally:
        kill(children)


def received(pipe: Any) -> Any:
    """Return what a client reports; Unmeasured if it reports a failure, RuntimeError if it died."""
    try:
        report = pipe.recv()
    except EOFError:
        raise RuntimeError("a client has died; its traceback is above") from None
    if isinstance(report, Failure):
        raise Unmeasured(f"a client was refused: {report}")
    return report


def _within(window: Window, times: np.ndarray) -> np.ndarray:
    """Return the latencies of the answers that came within ``window``.

    times: float64 [A], when each answer came; the next message was sent at once.
    """
    ends = times[1:]
    return np.diff(times)[(ends > window.begin) & (ends <= window.end)]


def _run_client(url: str, cell: Cell, pipe: Any) -> None:
    try:
        _step(url, cell, pipe)
    except Failure as failure:
        pipe.send(failure)


def _step(url: str, cell: Cell, pipe: Any) -> None:
    """Report when each answer came."""
    connect, step = _single(url, cell) if cell.environments == 1 else _vector(url, cell)
    connect()
    for _ in range(FIRST_MESSAGES):
        step()
    pipe.send("connected")
    end = pipe.recv().end
    now = time.monotonic()
    times = [now]
    while now < end:
        step()
        now = time.monotonic()
        times.append(now)
    pipe.send(np.array(times))
    pipe.recv()  # stays connected until it is killed: the servers' memory is measured meanwhile


def _single(url: str, cell: Cell) -> tuple[Callable[[], Any], Callable[[], Any]]:
    client = Client(url, protocol=1 if cell.protocol == 1 else 2)
    state: Any = cell.observation
    if cell.protocol == 1 and cell.observation.ndim == 1:
        state = cell.observation.tolist()
    return lambda: client.init(state), lambda: client.send(1.0, state)


def _vector(url: str, cell: Cell) -> tuple[Callable[[], Any], Callable[[], Any]]:
    client = VectorClient(url, cell.environments)
    observations = np.stack([cell.observation] * cell.environments)
    rewards = np.ones(cell.environments)
    return lambda: client.init(observations), lambda: client.send(rewards, observations)
