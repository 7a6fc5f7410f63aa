"""The agents of an actor worker, by groups: the file of ``relaax-actor --agents``.

An experiment writes it; see docs/experiments.md.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, PositiveInt, ValidationError

from relaax.algorithm_base import Section
from relaax.configuration.mistakes import explain
from relaax.configuration.yaml_reader import read_yaml
from relaax.errors import ConfigurationError


class AgentGroup(Section):
    """Agents that one policy acts for, and whose steps go one way."""

    #: A regular expression for all of an agent's name, or of its index in its environment, from 0.
    index_regex: str
    #: Words of a command line of ``relaax-actor``: the policy's configuration, how it is asked, and
    #: where steps go.
    arguments: list[str]

    def matches(self, index: int, name: str) -> bool:
        """Return whether the expression matches an agent."""
        return matches_agent(self.index_regex, index, name)


class ActorAgents(Section):
    """All groups: an agent belongs to the first one that matches."""

    ring_size: PositiveInt = 1
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
        raise ConfigurationError(
            f"agent_specs: no index_regex matches the agent {name!r} with the index {index}; "
            f"there are: {expressions}"
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
