"""The agents of an actor worker, by groups: the file of ``relaax-actor --agents``.

An experiment writes it; see docs/experiments.md.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from relaax.algorithm_base import Section
from relaax.configuration.mistakes import explain
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError


class AgentSamples(Section):
    """Which steps of agents are sent together, and when: seed 002, "Additional specifications"."""

    #: Steps of an agent are sent when so many are there, and ``bootstrap_steps`` behind them; None
    #: sends each at once.
    sample_steps: PositiveInt | None = None
    bootstrap_steps: NonNegativeInt = 1
    #: Steps are sent when their episode is over.
    send_after_done: bool = False
    #: All of an episode is one sample.
    send_full_trajectory: bool = False
    #: Episodes have ``max_num_steps`` and ``bootstrap_steps`` rows, of which the last may be empty.
    pad_trajectory: bool = False
    #: An episode is one step: the first one, with the sum of all rewards.
    send_concise_info: bool = False
    #: Raise an error for a trajectory with steps of two versions.
    require_one_version: bool = False

    def model_post_init(self, context: Any) -> None:
        """Refuse keys without effect."""
        if self.send_concise_info:
            self._refuse("sample_steps", "send_after_done", "pad_trajectory", beside="concise_info")
        if self.send_full_trajectory:
            self._refuse("sample_steps", "send_after_done", beside="full_trajectory")
        elif self.pad_trajectory:
            raise ValueError("pad_trajectory: no effect without send_full_trajectory: true")
        has_windows = self.sample_steps is not None and not self.send_after_done
        if not (has_windows or self.pad_trajectory) and "bootstrap_steps" in self.model_fields_set:
            raise ValueError(
                "bootstrap_steps: no effect without pad_trajectory, or sample_steps that do not "
                "wait for the end of an episode"
            )
        if self.pad_trajectory and self.bootstrap_steps == 0:
            raise ValueError("bootstrap_steps: must be 1 or more with pad_trajectory")

    @property
    def sends_episodes(self) -> bool:
        """Whether nothing of an episode is sent before its end."""
        return self.send_after_done or self.send_full_trajectory or self.send_concise_info

    def _refuse(self, *keys: str, beside: str) -> None:
        for key in keys:
            if getattr(self, key):
                raise ValueError(f"{key}: no effect with send_{beside}: true")

    def written(self) -> dict[str, Any]:
        """Return the keys that are not the defaults."""
        fields = AgentSamples.model_fields
        return {
            key: getattr(self, key)
            for key in fields
            if getattr(self, key) != fields[key].get_default()
        }


class AgentGroup(AgentSamples):
    """Agents that one policy acts for, and whose steps go one way."""

    #: A regular expression for all of an agent's name, or of its index in its environment, from 0.
    index_regex: str
    #: Words of a command line of ``relaax-actor``: the policy's configuration, how it is asked, and
    #: where steps go.
    arguments: list[str]
    #: The episodes of an environment's agents of the group are sent together.
    is_team: bool = False

    def matches(self, index: int, name: str) -> bool:
        """Return whether the expression matches an agent."""
        return matches_agent(self.index_regex, index, name)


class ActorAgents(Section):
    """All groups: an agent belongs to the first one that matches."""

    ring_size: PositiveInt = 1
    #: Episodes are cut off after so many steps of an agent.
    max_num_steps: PositiveInt | None = None
    groups: list[AgentGroup] = Field(min_length=1)

    def members(self, names: Sequence[str]) -> dict[int, list[str]]:
        """Return the agents of each group, by its number; groups without agents are left out.

        ConfigurationError for an agent that no group matches.
        """
        found: dict[int, list[str]] = {}
        for index, name in enumerate(names):
            found.setdefault(self._group_of(index, name), []).append(name)
        return found

    def _group_of(self, index: int, name: str) -> int:
        for number, group in enumerate(self.groups):
            if group.matches(index, name):
                return number
        expressions = ", ".join(repr(group.index_regex) for group in self.groups)
        named = f"the agent {name!r} with the index {index}" if name else "the only agent, 0"
        raise ConfigurationError(
            f"agent_specs: no index_regex matches {named}; there are: {expressions}"
        )


def matches_agent(index_regex: str, index: int, name: str) -> bool:
    """Return whether an expression matches all of an agent's name, or of its index."""
    return any(re.fullmatch(index_regex, text) for text in (name, str(index)))


def read_agents(file: Path) -> ActorAgents:
    """Return the content of a file; ConfigurationError with the path of a wrong key."""
    try:
        return ActorAgents.model_validate(read_yaml(file))
    except ValidationError as error:
        raise ConfigurationError("; ".join(f"{file}: {each}" for each in explain(error))) from error
