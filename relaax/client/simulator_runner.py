"""Plays the episodes of a simulator through a ``Client``; the part common to all runners."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from relaax.client.checks import single_flag, single_number
from relaax.client.episode_info import send_numbers
from relaax.client.failure import Failure
from relaax.client.multi_agent_client import AgentClient
from relaax.client.restarts import RESTARTS
from relaax.client.rlx_client import Client
from relaax.client.simulator import (
    EpisodeSummary,
    RunObserver,
    RunOutcome,
    RunResult,
    Simulator,
    result_of_failure,
)
from relaax.client.vector_client import VectorClient
from relaax.telemetry.interval_metrics import IntervalMetrics

_Client = TypeVar("_Client", Client, VectorClient, AgentClient)
_Answer = TypeVar("_Answer")


class EpisodeRunner(ABC, Generic[_Client]):
    """Plays episodes for as long as the server answers.

    A ``Failure`` in the middle of an episode restarts the episode, unless the server refuses the
    client's message and no episode has ended before. A ``Failure`` of ``client.init`` ends the run,
    so give the client a ``Backoff``.

    The server gets the metric ``act latency``, in seconds: the mean of a second, when it ends. A
    second has one at most, however short the episodes are.
    """

    def __init__(
        self, client: _Client, observer: RunObserver | None, clock: Callable[[], float]
    ) -> None:
        self._client: _Client = client
        self._observer = observer or RunObserver()
        self._means = IntervalMetrics(client.metrics(), clock=clock)
        self._episodes: int | None = None
        self._played = 0
        self._restarts = 0
        self._was_connected = self._is_connected = False

    def run(self, episodes: int | None = None) -> RunResult:
        """Play until ``episodes`` are over, or the server does not answer.

        Exceptions of environments propagate.
        """
        self._episodes, self._played = episodes, 0
        while not self._is_finished():
            state = self._begin()
            try:
                action = self._client.init(state)
            except Failure as failure:
                return result_of_failure(failure, self._was_connected)
            self._note_connected()
            try:
                self._play(action)
            except Failure as failure:
                self._is_connected = False
                self._observer.on_disconnected()
                if failure.is_final and not self._played:
                    return result_of_failure(failure, self._was_connected)
        return RunResult(RunOutcome.FINISHED, f"{self._played} episodes are over")

    @abstractmethod
    def _begin(self) -> Any:
        """Start an episode, or one in each environment; return the first state or states."""

    @abstractmethod
    def _play(self, action: Any) -> None:
        """Play on from the first action or actions, an episode or all of them."""

    def _is_finished(self) -> bool:
        return self._episodes is not None and self._played >= self._episodes

    def _note_connected(self) -> None:
        if self._is_connected:
            return
        self._was_connected = self._is_connected = True
        self._observer.on_connected()
        self._note_restarts(0)

    def _note_restarts(self, more: int) -> None:
        """Let the server know how often environments were made again, if any were."""
        self._restarts += more
        if more or self._observer.restarts:
            total = self._restarts + self._observer.restarts
            self._client.metrics().scalar(RESTARTS, total)

    def _note_episode(self, episode_return: float, length: int, began: float) -> None:
        """Count an episode that is over; it ``began`` at that time of ``time.perf_counter``."""
        seconds = time.perf_counter() - began
        self._observer.on_episode(EpisodeSummary(episode_return, length, seconds))
        self._played += 1

    def _timed(self, ask: Callable[[], _Answer]) -> _Answer:
        """Return the answer of ``ask``; a call that raises is not measured."""
        asked = time.perf_counter()
        answer = ask()
        self._means.add("act latency", time.perf_counter() - asked)
        self._means.store_if_due()
        return answer


class SimulatorRunner(EpisodeRunner[Client]):
    """Plays episodes of one simulator."""

    def __init__(
        self,
        simulator: Simulator,
        client: Client,
        *,
        observer: RunObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(client, observer, clock)
        self._simulator = simulator

    def _begin(self) -> Any:
        self._observer.environment_begins()
        state = self._simulator.restart()
        self._observer.environment_returned()
        return state

    def _play(self, action: Any) -> None:
        began, episode_return, length = time.perf_counter(), 0.0, 0
        while True:
            self._observer.environment_begins()
            step = self._simulator.apply(action)
            self._observer.environment_returned()
            reward = single_number("the reward", step.reward)
            episode_return, length = episode_return + reward, length + 1
            self._observer.on_step()
            is_terminated = single_flag("terminated", step.is_terminated)
            is_truncated = single_flag("truncated", step.is_truncated)
            if is_terminated or is_truncated:
                send_numbers(self._client.metrics(), step.episode_info)
            if is_terminated:
                self._client.reset(reward, action=step.executed)
                break
            if is_truncated:
                self._client.truncate(reward, step.state, action=step.executed)
                break
            send = partial(self._client.send, reward, step.state, action=step.executed)
            action = self._timed(send)
        self._note_episode(episode_return, length, began)
