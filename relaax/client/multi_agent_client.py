"""A client for environments with several agents: they take turns, join and leave.

    client = MultiAgentClient("localhost:7001", agents=("player_1", "player_2"), environments=8)
    actions = client.init({(0, "player_1"): AgentReport(observation, starts=True)})
    actions = client.send({(0, "player_2"): AgentReport(observation, starts=True)})
    actions = client.send({(0, "player_1"): AgentReport(observation, reward=0.5)})
    client.send({(0, "player_2"): AgentReport(reward=1.0, is_terminated=True)})

An agent reports when it wants an action, and at the end of its episode. The network is evaluated
once for all reports of a call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from relaax.client.action_masks import MaskedState
from relaax.client.episode_info import send_numbers
from relaax.client.vector_client import VectorClient
from relaax.observations import mapped, named
from relaax.protocol.binary import Answers
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps, wants_action
from relaax.telemetry.metrics import Metrics

#: An environment's number, and the name of one of its agents.
Agent: TypeAlias = tuple[int, str]


@dataclass(frozen=True)
class AgentReport:
    """An agent's report of the time since its last action, or the first one of its episode."""

    #: For the next action: numbers, an array, or arrays by name; None where the agent has left.
    observation: Any = None
    #: The sum of all that it has earned since its last action.
    reward: float = 0.0
    #: Whether an episode begins with the observation, after an end in the same report or without.
    starts: bool = False
    is_terminated: bool = False
    #: Cut off; one that is terminated, too, counts as terminated.
    is_truncated: bool = False
    #: The last observation of an episode that is cut off.
    final: Any = None
    #: Of the last step of an episode: numbers of the environment's own, by name.
    episode_info: Mapping[str, float] = field(default_factory=dict)

    @property
    def flags(self) -> int:
        """The flags of the report, as in ``relaax.steps``."""
        start = START if self.starts else 0
        if self.is_terminated:
            return start | TERMINATED
        return start | TRUNCATED | FINAL if self.is_truncated else start


class AgentClient(Protocol):
    """What a ``MultiAgentRunner`` needs of a client."""

    def init(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """Start episodes of the agents that act first; return their actions."""

    def send(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """Report what some agents have earned and see; return the next actions."""

    def metrics(self) -> Metrics:
        """Return where the environments' scalars go."""


class MultiAgentClient:
    """A connection that carries ``environments``, each with the ``agents`` of these names.

    ``options`` and the errors are those of ``VectorClient``: after a ``Failure`` all environments
    start again with ``init``.
    """

    def __init__(
        self, rlx_server_url: str, agents: Sequence[str], environments: int = 1, **options: Any
    ) -> None:
        if not agents or len(set(agents)) < len(agents):
            raise ValueError(f"agents are different names, one or more, not {list(agents)}")
        self._numbers = {
            (environment, name): environment * len(agents) + index
            for environment in range(environments)
            for index, name in enumerate(agents)
        }
        count = environments * len(agents)
        self._client = VectorClient(rlx_server_url, count, agents=agents, **options)

    def init(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """Start episodes of the agents that act first; return their actions.

        It connects if there is no connection. Episodes that are still running count as cut off.
        """
        steps = self._steps(reports)
        return _actions(reports, steps, self._client.begin(steps))

    def send(self, reports: Mapping[Agent, AgentReport]) -> dict[Agent, Any]:
        """Report what some agents have earned and see; return the actions of those that want one.

        ValueError as in ``send`` of ``VectorClient``, and KeyError for an agent that there is not.
        """
        steps = self._steps(reports)
        for agent, report in reports.items():
            if report.episode_info and (report.is_terminated or report.is_truncated):
                send_numbers(self.metrics(), report.episode_info, self._numbers[agent])
        return _actions(reports, steps, self._client.exchange(steps))

    def metrics(self) -> Metrics:
        """Return where the environments' scalars go; see ``VectorClient``."""
        return self._client.metrics()

    def disconnect(self) -> None:
        """Close the connection, if there is one. A later ``init`` connects again."""
        self._client.disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disconnect()

    def _steps(self, reports: Mapping[Agent, AgentReport]) -> Steps:
        told = list(reports.values())
        flags = np.array([report.flags for report in told], np.uint8)
        return Steps(
            np.array([self._numbers[agent] for agent in reports], np.int64),
            flags,
            np.array([report.reward for report in told], np.float64),
            _rows([report.observation for report in compress(told, wants_action(flags))]),
            _rows([report.final for report in compress(told, flags & FINAL)]),
        )


def _actions(
    reports: Mapping[Agent, AgentReport], steps: Steps, answers: Answers
) -> dict[Agent, Any]:
    """Return the actions by agent; a single number as Python's own."""
    actions = answers.actions
    listed = actions.tolist() if actions.ndim == 1 else list(actions)
    return dict(zip(compress(reports, steps.acting), listed, strict=True))


def _rows(states: Sequence[Any]) -> Any:
    """Return states of one kind as rows of arrays; () for no states."""
    if not states:
        return ()
    first = states[0]
    if isinstance(first, MaskedState):
        masks = [state.mask for state in states]
        of_all = None if any(mask is None for mask in masks) else np.stack(masks)
        return MaskedState(_rows([each.state for each in states]), of_all, first.dropped)
    if isinstance(first, dict):
        states = [named(state) for state in states]
    return mapped(lambda *parts: np.stack([np.asarray(part) for part in parts]), *states)
