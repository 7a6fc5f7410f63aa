"""Agents of one environment with policies of their own: a client and a worker for each."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from relaax.client.multi_agent_client import Agent, AgentReport, MultiAgentClient
from relaax.client.multi_agent_runner import AgentEnvironment, AgentSpaces, wants_action
from relaax.steps import Steps
from relaax.telemetry.metrics import Metrics


class RoutedClient:
    """An ``AgentClient``: the reports of each agent go to the client of its group.

    ``clients`` are by agent's name; agents of one group have the same one.
    """

    def __init__(self, clients: Mapping[str, MultiAgentClient]) -> None:
        self._clients = clients
        #: Each client once.
        self._all = list({id(each): each for each in clients.values()}.values())
        #: Those whose agents have reported since ``init``.
        self._begun: list[MultiAgentClient] = []

    def init(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """See ``AgentClient``: groups whose agents act later begin with their first report."""
        self._begun.clear()
        return self.send(reports)

    def send(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """See ``AgentClient``."""
        actions: dict[Agent, Any] = {}
        for client in self._all:
            own = {
                agent: report
                for agent, report in reports.items()
                if self._clients[agent[1]] is client
            }
            if own:
                actions |= self._ask(client, own)
        return actions

    def metrics(self) -> Metrics:
        """See ``AgentClient``: those of the first group."""
        return self._all[0].metrics()

    def _ask(
        self, client: MultiAgentClient, reports: Mapping[Agent, AgentReport]
    ) -> dict[Agent, Any]:
        if client in self._begun:
            return client.send(reports)
        actions = client.init(reports)
        self._begun.append(client)
        return actions


class Resets:
    """Counts the resets of an actor's environments."""

    def __init__(self) -> None:
        self.count = 0

    def reader(self) -> Callable[[Steps], bool]:
        """Return a function that says whether there was a reset since it was called last."""
        seen = 0

        def has_reset(_: Steps) -> bool:
            nonlocal seen
            before, seen = seen, self.count
            return seen != before

        return has_reset


class CountedEnvironment:
    """An ``AgentEnvironment`` whose resets are counted.

    An episode is cut off when an agent has taken ``longest`` steps: for those agents that want an
    action then, in the state that they see; for others, after their last action.
    """

    def __init__(
        self, environment: AgentEnvironment, resets: Resets, longest: int | None = None
    ) -> None:
        self._environment = environment
        self._resets = resets
        self._longest = longest
        self._taken: Counter[str] = Counter()
        self.agents = environment.agents

    def spaces_of(self, agents: Any) -> AgentSpaces:
        """See ``AgentEnvironment``."""
        return self._environment.spaces_of(agents)

    def restart(self) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        self._resets.count += 1
        self._taken.clear()
        return self._environment.restart()

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        self._taken.update(actions.keys())
        reports = self._environment.apply(actions)
        if self._longest is None or max(self._taken.values()) < self._longest:
            return reports
        cut = {agent: _cut_off(report) for agent, report in reports.items()}
        return {agent: report for agent, report in cut.items() if report is not None}

    def close(self) -> None:
        """See ``AgentEnvironment``."""
        self._environment.close()


def _cut_off(report: AgentReport) -> AgentReport | None:
    """Return the report of an agent that would go on, as the last one of its episode.

    An episode that would begin with it does not: None, or the end alone of the one before.
    """
    if not wants_action(report):
        return report
    if report.starts:
        has_end = report.is_terminated or report.is_truncated
        return replace(report, observation=None, starts=False) if has_end else None
    return AgentReport(
        None,
        report.reward,
        is_truncated=True,
        final=report.observation,
        episode_info=report.episode_info,
    )
