"""The newest observations of the other agents of an environment, side by side: an input of critics.

They are in the order of the agents' index, beside an agent's own. So one critic for all agents is a
function of the agent, too. An agent whose episode is not going on has zeros (Yu et al. 2021,
https://arxiv.org/abs/2103.01955, "death masking"). Numbers that an agent's own observation has
already may be left out (section 5.2, "feature-pruned").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from relaax.algorithm_base import EnvironmentInfo, Section, Transitions
from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.errors import InvalidState
from relaax.learning.arrays import zero_padded
from relaax.observations import UNNAMED, Observations, Shape, Shapes
from relaax.steps import AgentName

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

#: The name of this input of a network.
TEAM = "team"


@dataclass(frozen=True)
class Team:
    """What is seen of the other agents of an environment."""

    #: How many agents there are.
    size: int = 1
    #: Which numbers of an observation, from 0; None: all.
    features: tuple[int, ...] | None = None


class TeamSettings(Section):
    """The keys of an algorithm whose critic sees all agents of an environment."""

    #: How many agents each environment has; with 1 there is no input ``TEAM``.
    team_size: PositiveInt = 1
    #: Which numbers of the others' observations the critic sees, from 0; None: all of them.
    team_features: Annotated[tuple[NonNegativeInt, ...] | None, LISTED, Field(min_length=1)] = None

    @model_validator(mode="after")
    def _sees_others(self) -> "TeamSettings":
        if self.team_size == 1:
            require_effect(self, ("team_features",), "team_size above 1")
        return self

    @property
    def team_of_section(self) -> Team:
        """What is seen of the others."""
        return Team(self.team_size, self.team_features)


def team_shape(own: Shapes, team: Team) -> Shape:
    """Return the shape of the input of ``team``, whose observations have ``own`` shapes.

    ValueError where these are no vectors, have its name, or lack some of its features.
    """
    named = own if isinstance(own, Mapping) else {UNNAMED: own}
    if TEAM in named:
        raise ValueError(f"state_size: {TEAM}: an input has this name with team_size above 1")
    for name, shape in named.items():
        if len(shape) > 1:
            raise ValueError(
                f"team_size: {team.size} agents: {f'the observation {name}' if name else 'a state'}"
                f" is an image, {list(shape)}; those of several agents are put side by side if "
                "they are vectors"
            )
    width = sum(prod(shape) for shape in named.values())
    for feature in team.features or ():
        if feature >= width:
            raise ValueError(
                f"team_features: {feature}: observations have the numbers 0 to {width - 1}"
            )
    return ((team.size - 1) * (width if team.features is None else len(team.features)),)


def misfit_of_team(size: int, agents: Sequence[AgentName]) -> str | None:
    """Return in words why ``agents`` of one environment are no team of ``size``, if so."""
    if len(agents) == size:
        return None
    there = "1 agent" if len(agents) == 1 else f"{len(agents)} agents"
    return (
        f"this policy acts for {there} of the environment, and team_size is {size}: one "
        "specification must match all agents of a team"
    )


class TeamView:
    """Puts the observations of the others beside an agent's; ``own`` are the shapes of an agent."""

    def __init__(self, own: Shapes, team: Team) -> None:
        self._own, self._team, others = own, team, team.size - 1
        self._names = sorted(own) if isinstance(own, Mapping) else [UNNAMED]
        self._newest = np.zeros((0, team_shape(own, team)[0] // others))
        #: int64 [slots, size - 1]: the slots of the others.
        self._others: IntArray = np.zeros((0, others), np.int64)

    @classmethod
    def of(cls, own: Shapes, team: Team) -> "TeamView | None":
        """Return the view of a team; None of one agent."""
        return None if team.size == 1 else cls(own, team)

    def anew(self) -> "TeamView":
        """Return the same for other environments."""
        return TeamView(self._own, self._team)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        self._newest = zero_padded(self._newest, capacity, axis=0)
        self._others = zero_padded(self._others, capacity, axis=0)

    def connect(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take the agents of a client; InvalidState where a group is no team."""
        groups: dict[str, list[tuple[int, int]]] = {}
        for slot, environment in zip(slots.tolist(), environments, strict=True):
            agent = environment.agent
            group = agent.group or str(slot)
            groups.setdefault(group, []).append((agent.number, slot))
        for members in groups.values():
            misfit = misfit_of_team(self._team.size, [AgentName(number=n) for n, _ in members])
            if misfit is not None:
                raise InvalidState(misfit)
            ordered = [slot for _, slot in sorted(members)]
            for slot in ordered:
                self._others[slot] = [other for other in ordered if other != slot]
        self._newest[slots] = 0

    def beside(
        self, transitions: Transitions, states: Observations, finals: Observations
    ) -> tuple[Observations, Observations]:
        """Return both with the input ``TEAM`` [B, (size - 1) * D], after the reports of a turn.

        ``states`` and ``finals`` are checked ones, not stacked.
        """
        acting = transitions.acting
        own = self._flat(states) if len(acting) else self._newest[:0]
        goes_on = ~transitions.starts
        self._newest[acting[goes_on]] = own[goes_on]
        if transitions.only_steps:
            return self._with_team(acting, states), finals
        self._newest[transitions.ended] = 0
        truncated = transitions.truncated
        if len(truncated):
            self._newest[truncated] = self._flat(finals)
            finals = self._with_team(truncated, finals)
            self._newest[transitions.ended] = 0
        self._newest[transitions.started] = own[transitions.starts]
        return self._with_team(acting, states) if len(acting) else states, finals

    def _flat(self, observations: Observations) -> Array:
        """Return what others see of the observations of agents [B, ...]: vectors [B, D]."""
        named = _by_name(observations)
        rows = np.concatenate([named[n].reshape(len(named[n]), -1) for n in self._names], axis=1)
        return rows if self._team.features is None else rows[:, self._team.features]

    def _with_team(self, slots: IntArray, observations: Observations) -> Observations:
        named = _by_name(observations)
        team = self._newest[self._others[slots]].reshape(len(slots), -1)
        return {**named, TEAM: team.astype(np.result_type(*(named[n] for n in self._names)))}


def _by_name(observations: Observations) -> dict[str, Array]:
    return observations if isinstance(observations, dict) else {UNNAMED: observations}
