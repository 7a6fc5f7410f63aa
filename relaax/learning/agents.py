"""Which policy acts for which agent: the key ``agents`` of the configuration.

Seed 002's AgentSpec: the first entry that matches an agent's index or name is its own.
"""

import re
from collections.abc import Sequence

from pydantic import Field, field_validator

from relaax.algorithm_base import DEFAULT, Section
from relaax.learning.policy import Seat
from relaax.steps import AgentName

#: A name of a policy, as parameters are published with.
POLICY_PATTERN = r"^[\w.:-]{1,64}$"


class AgentSection(Section):
    """Some agents, and the policy that acts for them."""

    #: A regular expression for all of an agent's name, or of its index among the agents of its
    #: environment, from 0. An agent without a name has the empty one, and the index 0.
    index_regex: str
    #: The name of the policy.
    policy: str = Field(DEFAULT, pattern=POLICY_PATTERN)

    @field_validator("index_regex")
    @classmethod
    def _is_regex(cls, text: str) -> str:
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from error
        return text

    def matches(self, agent: AgentName) -> bool:
        """Return whether ``agent`` is one of them."""
        return any(re.fullmatch(self.index_regex, text) for text in (agent.name, str(agent.number)))


class AgentPolicies:
    """Returns the name of the policy for an episode: that of the first section that matches."""

    def __init__(self, sections: Sequence[AgentSection]) -> None:
        self._sections = sections

    @property
    def names(self) -> set[str]:
        """The names of all policies."""
        return {section.policy for section in self._sections}

    def policy_of(self, agent: AgentName) -> str | None:
        """Return the name of the policy for ``agent``; None where no section matches it."""
        return next((each.policy for each in self._sections if each.matches(agent)), None)

    def misfit_of(self, agents: Sequence[AgentName]) -> str | None:
        """Return in words which of ``agents`` no section matches, if there is one."""
        for agent in agents:
            if self.policy_of(agent) is None:
                expressions = ", ".join(repr(each.index_regex) for each in self._sections)
                return (
                    f"no entry of agents matches the agent {agent.name!r} with the index "
                    f"{agent.number}: the expressions are {expressions}"
                )
        return None

    def __call__(self, seat: Seat) -> str:
        """Return the name for an episode that begins."""
        policy = self.policy_of(seat.agent)
        if policy is None:
            raise ValueError(self.misfit_of([seat.agent]))
        return policy
