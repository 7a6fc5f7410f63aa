"""Plays environments with several agents through an ``AgentClient``."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from relaax.client.checks import single_number
from relaax.client.multi_agent_client import Agent, AgentClient, AgentReport
from relaax.client.simulator import RunObserver
from relaax.client.simulator_runner import EpisodeRunner
from relaax.errors import ConfigurationError


class AgentSpaces(NamedTuple):
    """The spaces of agents that are alike, as on the wire (docs/protocol.md); None: not checked."""

    observation_space: dict[str, Any] | None
    action_space: dict[str, Any] | None


class AgentEnvironment(Protocol):
    """An environment with several agents, of which some act at a time."""

    agents: Sequence[str]

    def spaces_of(self, agents: Sequence[str]) -> AgentSpaces:
        """Return the spaces of these agents; ConfigurationError where two have different ones."""

    def restart(self) -> dict[str, AgentReport]:
        """Start a game; return the reports of the agents that act first, all of which start."""

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """Take the actions of the agents that wanted one; return the next reports.

        They are of agents that want an action, and of agents whose episode ends. The game is over
        when no report wants an action.
        """

    def close(self) -> None:
        """Release its resources."""


class MultiAgentRunner(EpisodeRunner[AgentClient]):
    """Plays games in all ``environments`` at once, of which each is one of the client's.

    A game's return is the sum of the rewards of all its agents. Games beyond the number that was
    asked for, which end in the same step as the last one, are not counted.
    """

    def __init__(
        self,
        environments: Sequence[AgentEnvironment],
        client: AgentClient,
        *,
        observer: RunObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(client, observer, clock)
        self._games = [_Game(environment) for environment in environments]

    def _begin(self) -> dict[Agent, AgentReport]:
        return self._gathered([game.restart for game in self._games])

    def _play(self, action: dict[Agent, Any]) -> None:
        actions = action
        while not self._is_finished():
            wanted: list[dict[str, Any]] = [{} for _ in self._games]
            for (number, agent), chosen in actions.items():
                wanted[number][agent] = chosen
            pairs = zip(self._games, wanted, strict=True)
            reports = self._gathered([partial(self._step, game, each) for game, each in pairs])
            self._observer.on_step(len(actions))
            actions = self._timed(partial(self._client.send, reports))

    def _gathered(
        self, steps: Sequence[Callable[[], Mapping[str, AgentReport]]]
    ) -> dict[Agent, AgentReport]:
        """Take a step in each game, and return all reports."""
        reports: dict[Agent, AgentReport] = {}
        self._observer.environment_begins()
        for number, step in enumerate(steps):
            reports |= {(number, agent): each for agent, each in step().items()}
        self._observer.environment_returned()
        return reports

    def _step(self, game: "_Game", actions: Mapping[str, Any]) -> Mapping[str, AgentReport]:
        """Take a step in one game; where it is over, the next one begins in the same reports."""
        reports = game.apply(actions)
        if _goes_on(reports):
            return reports
        if not self._is_finished():
            self._note_episode(game.total, game.length, game.began)
        return merged(reports, game.restart())


class _Game:
    """A game that goes on in an environment: its rewards, its actions, and since when."""

    def __init__(self, environment: AgentEnvironment) -> None:
        self._environment = environment

    def restart(self) -> dict[str, AgentReport]:
        self.total, self.length, self.began = 0.0, 0, time.perf_counter()
        reports = self._environment.restart()
        if not _goes_on(reports):
            raise ConfigurationError("a game begins, and no agent has a turn")
        return reports

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        reports = self._environment.apply(actions)
        self.length += len(actions)
        self.total += sum(single_number("a reward", each.reward) for each in reports.values())
        return reports


def _goes_on(reports: Mapping[str, AgentReport]) -> bool:
    return any(wants_action(report) for report in reports.values())


def wants_action(report: AgentReport) -> bool:
    """Return whether an agent wants an action."""
    return report.starts or not (report.is_terminated or report.is_truncated)


def merged(
    ends: Mapping[str, AgentReport], starts: Mapping[str, AgentReport]
) -> dict[str, AgentReport]:
    """Return reports of ends and of starts, of which an agent may have both, as one of each."""
    both = {
        agent: replace(ends[agent], observation=start.observation, starts=True)
        for agent, start in starts.items()
        if agent in ends
    }
    return {**ends, **starts, **both}
