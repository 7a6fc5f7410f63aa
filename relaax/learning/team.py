"""The newest observations of all agents of an environment, side by side: an input of critics.

An agent's own come first, then those of the others in the order of their index. So one critic for
all agents is a function of the agent, too. An agent whose episode is not going on has zeros
(Yu et al. 2021, https://arxiv.org/abs/2103.01955, "death masking").
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import PositiveInt

from relaax.algorithm_base import EnvironmentInfo, Section, Transitions
from relaax.errors import InvalidState
from relaax.learning.arrays import zero_padded
from relaax.observations import UNNAMED, Observations, Shape, Shapes
from relaax.steps import AgentName

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

#: The name of this input of a network.
TEAM = "team"


class TeamSettings(Section):
    """The key of an algorithm whose critic sees all agents of an environment."""

    #: How many agents each environment has; with 1 there is no input ``TEAM``.
    team_size: PositiveInt = 1


def team_shape(own: Shapes, size: int) -> Shape:
    """Return the shape of the input of ``size`` agents with observations of ``own`` shapes.

    ValueError where these are no vectors, or have its name.
    """
    named = own if isinstance(own, Mapping) else {UNNAMED: own}
    if TEAM in named:
        raise ValueError(f"state_size: {TEAM}: an input has this name with team_size above 1")
    for name, shape in named.items():
        if len(shape) > 1:
            raise ValueError(
                f"team_size: {size} agents: {f'the observation {name}' if name else 'a state'} is "
                f"an image, {list(shape)}; those of several agents are put side by side if they "
                "are vectors"
            )
    return (size * sum(prod(shape) for shape in named.values()),)


def misfit_of_team(size: int, agents: Sequence[AgentName]) -> str | None:
    """Return in words why ``agents`` of one environment are no team of ``size``, if so."""
    if len(agents) == size:
        return None
    there = "1 agent" if len(agents) == 1 else f"{len(agents)} agents"
    return f"the environment has {there}, and the configuration says team_size: {size}"


class TeamView:
    """Puts the observations of all agents beside those of each; ``own`` are the agents' shapes."""

    def __init__(self, own: Shapes, size: int) -> None:
        self._own, self._size = own, size
        self._names = sorted(own) if isinstance(own, Mapping) else [UNNAMED]
        self._newest = np.zeros((0, team_shape(own, size)[0] // size))
        #: int64 [slots, size]: the slots of an agent and of the others.
        self._slots: IntArray = np.zeros((0, size), np.int64)

    @classmethod
    def of(cls, own: Shapes, size: int) -> "TeamView | None":
        """Return the view of a team; None of one agent."""
        return None if size == 1 else cls(own, size)

    def anew(self) -> "TeamView":
        """Return the same for other environments."""
        return TeamView(self._own, self._size)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        self._newest = zero_padded(self._newest, capacity, axis=0)
        self._slots = zero_padded(self._slots, capacity, axis=0)

    def connect(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take the agents of a client; InvalidState where a group is no team."""
        groups: dict[str, list[tuple[int, int]]] = {}
        for slot, environment in zip(slots.tolist(), environments, strict=True):
            agent = environment.agent
            group = agent.group or str(slot)
            groups.setdefault(group, []).append((agent.number, slot))
        for members in groups.values():
            if len(members) != self._size:
                raise InvalidState(
                    misfit_of_team(self._size, [AgentName(number=n) for n, _ in members]) or ""
                )
            ordered = [slot for _, slot in sorted(members)]
            for slot in ordered:
                self._slots[slot] = [slot, *(other for other in ordered if other != slot)]
        self._newest[slots] = 0

    def beside(
        self, transitions: Transitions, states: Observations, finals: Observations
    ) -> tuple[Observations, Observations]:
        """Return both with the input ``TEAM`` [B, size * D], after the reports of a turn.

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
        """Return the observations of agents [B, ...] as vectors [B, D]."""
        named = _by_name(observations)
        return np.concatenate([named[n].reshape(len(named[n]), -1) for n in self._names], axis=1)

    def _with_team(self, slots: IntArray, observations: Observations) -> Observations:
        named = _by_name(observations)
        team = self._newest[self._slots[slots]].reshape(len(slots), -1)
        return {**named, TEAM: team.astype(np.result_type(*(named[n] for n in self._names)))}


def _by_name(observations: Observations) -> dict[str, Array]:
    return observations if isinstance(observations, dict) else {UNNAMED: observations}
