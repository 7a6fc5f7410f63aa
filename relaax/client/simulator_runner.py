"""Drives one simulator through a ``Client``."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from relaax.client.checks import single_flag, single_number
from relaax.client.failure import Failure
from relaax.client.restarts import RESTARTS
from relaax.client.rlx_client import Client
from relaax.client.simulator import (
    STOPPED,
    EpisodeSummary,
    RunObserver,
    RunOutcome,
    RunResult,
    Simulator,
    result_of_failure,
)
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics

StopCondition: TypeAlias = Callable[[], bool] | threading.Event
_Answer = TypeVar("_Answer")


class SimulatorRunner:
    """Plays episodes of one simulator for as long as the server answers.

    A ``Failure`` in the middle of an episode restarts the episode, unless the server refuses the
    client's message and no episode has ended before. A ``Failure`` of ``client.init`` ends the run,
    so give the client a ``Backoff``. ``stop`` is checked before each step.
    """

    def __init__(
        self,
        simulator: Simulator,
        client: Client,
        *,
        observer: RunObserver | None = None,
        stop: StopCondition | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._simulator = simulator
        self._client = client
        self._latency = ActLatency(client.metrics(), clock)
        self._observer = observer or RunObserver()
        self._is_stopped = _as_callable(stop)
        self._was_connected = False
        self._is_connected = False

    def run(self, episodes: int | None = None) -> RunResult:
        """Play until ``episodes`` are over, the stop condition holds or the server does not answer.

        Exceptions of the simulator propagate.
        """
        played = 0
        while episodes is None or played < episodes:
            episode = _Episode()
            self._observer.environment_begins()
            state = self._simulator.restart()
            self._observer.environment_returned()
            try:
                action = self._start(state)
            except Failure as failure:
                return self._ended_by(failure)
            try:
                is_over = self._play(episode, action)
            except Failure as failure:
                self._is_connected = False
                self._observer.on_disconnected()
                if failure.is_final and not played:
                    return self._ended_by(failure)
                continue
            if not is_over:
                return STOPPED
            self._observer.on_episode(episode.summary())
            played += 1
        return RunResult(RunOutcome.FINISHED, f"{played} episodes are over")

    def _start(self, state: Any) -> Any:
        action = self._client.init(state)
        self._was_connected = True
        if not self._is_connected:
            self._is_connected = True
            self._observer.on_connected()
            if self._observer.restarts:
                self._client.metrics().scalar(RESTARTS, self._observer.restarts)
        return action

    def _ended_by(self, failure: Failure) -> RunResult:
        if self._is_stopped():
            return STOPPED
        return result_of_failure(failure, self._was_connected)

    def _play(self, episode: "_Episode", action: Any) -> bool:
        """Play an episode; return whether it came to its end."""
        while not self._is_stopped():
            self._observer.environment_begins()
            step = self._simulator.apply(action)
            self._observer.environment_returned()
            reward = single_number("the reward", step.reward)
            episode.add_step(reward)
            self._observer.on_step()
            if single_flag("terminated", step.is_terminated):
                self._client.reset(reward, action=step.executed)
                return True
            if single_flag("truncated", step.is_truncated):
                self._client.truncate(reward, step.state, action=step.executed)
                return True
            action = self._latency.timed(
                partial(self._client.send, reward, step.state, action=step.executed)
            )
        return False


@dataclass
class _Episode:
    """The counts of a running episode."""

    began: float = field(default_factory=time.perf_counter)
    episode_return: float = 0.0
    length: int = 0

    def add_step(self, reward: float) -> None:
        self.episode_return += reward
        self.length += 1

    def summary(self) -> EpisodeSummary:
        seconds = time.perf_counter() - self.began
        return EpisodeSummary(self.episode_return, self.length, seconds)


def _as_callable(stop: StopCondition | None) -> Callable[[], bool]:
    if stop is None:
        return lambda: False
    return stop.is_set if isinstance(stop, threading.Event) else stop


class ActLatency:
    """Sends ``metrics`` the metric ``act latency``, in seconds: the mean of a second, when it ends.

    However short the episodes are, a second has one at most.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._means = IntervalMetrics(metrics, clock=clock)

    def timed(self, ask: Callable[[], _Answer]) -> _Answer:
        """Return the answer of ``ask``; a call that raises is not measured."""
        asked = time.perf_counter()
        answer = ask()
        self._means.add("act latency", time.perf_counter() - asked)
        self._means.store_if_due()
        return answer
