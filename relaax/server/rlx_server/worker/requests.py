"""Joins the steps of all connections that are ready."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import BatchAgentBase
from relaax.errors import InvalidState
from relaax.observations import Observations, joined, kind_of, mapped
from relaax.server.rlx_server.worker.environments import Episodes, FloatArray
from relaax.server.rlx_server.worker.session import Session
from relaax.steps import (
    UNNAMED_AGENT,
    AgentName,
    Flags,
    IntArray,
    States,
    Steps,
    Transitions,
    number_of,
)

Array = npt.NDArray[Any]

NO_STATES: npt.NDArray[Any] = np.zeros(0, np.float32)


class Request(NamedTuple):
    """Steps that wait for their answer."""

    session: Session
    steps: Steps

    @property
    def slots(self) -> IntArray:
        """int64 [M]: where its environments are in this worker."""
        slots: IntArray = self.session.slots[self.steps.environments]
        return slots


class Report(NamedTuple):
    """The joined content of several requests."""

    transitions: Transitions
    #: [A, ...]
    states: Observations
    #: Of the truncated episodes.
    finals: Observations


class Joiner:
    """Joins requests; all environments of a worker have one kind of observation.

    ``episodes`` reads which of them go on. Observations of another type of numbers, or with other
    names, are refused while there are environments.
    """

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        #: Of the observations of all environments: a type of numbers, or types by name.
        self._dtype: Any = None

    def note(self, states: Observations) -> None:
        """Hold later environments to the kind of ``states``, which an agent has taken."""
        if number_of(states):
            self._dtype = _dtype_of(states)

    def forget(self) -> None:
        """Take any kind again: there is no environment left."""
        self._dtype = None

    def read(self, agent: BatchAgentBase, requests: list[Request]) -> Report:
        """Return the joined requests; ProtocolError or AgentError if one cannot be used.

        Nothing changes.
        """
        slots, flags, rewards = _joined(requests)
        transitions = self._episodes.read(slots, flags, rewards)
        states = self._checked(agent, [r.steps.observations for r in requests])
        finals: Observations = NO_STATES
        if not transitions.only_steps:
            finals = self._checked(agent, [finals_of_truncated(r.steps) for r in requests])
        if len(transitions.executed):
            executed = [r.steps.executed for r in requests if len(r.steps.executed)]
            checked = [agent.check_executed(actions) for actions in executed]
            transitions = transitions._replace(executed_actions=np.concatenate(checked))
        if any(request.steps.agents for request in requests):
            transitions = transitions._replace(agents=_acting_agents(requests))
        return Report(transitions, states, finals)

    def _checked(self, agent: BatchAgentBase, parts: list[States]) -> Observations:
        """Return all states as one array, or as arrays by name; InvalidState for unusable ones.

        States of one kind are joined and checked at once, all others one by one. Nothing changes.
        """
        parts = [part for part in parts if number_of(part)]
        if not parts:
            return NO_STATES
        if len(parts) == 1:
            return self._of_one_dtype(agent.check(parts[0]))
        if _are_alike(parts):
            return self._of_one_dtype(agent.check(np.concatenate(parts)))
        if are_of_one_kind(parts):
            return self._of_one_dtype(agent.check(joined(parts)))
        checked = [self._of_one_dtype(agent.check(part)) for part in parts]
        if not are_of_one_kind(checked):
            raise InvalidState("environments report observations of different kinds")
        return joined(checked)

    def _of_one_dtype(self, states: Observations) -> Observations:
        if self._dtype is not None and _dtype_of(states) != self._dtype:
            raise InvalidState(
                f"observations are {kinds(states)}, those of the other environments here are "
                f"{named_kinds(self._dtype)}"
            )
        return states


def finals_of_truncated(steps: Steps) -> States:
    """Return the final states of truncated episodes; nothing follows after terminated ones."""
    if number_of(steps.finals) == 0:
        return NO_STATES
    is_truncated = steps.is_truncated[steps.has_final]
    if isinstance(steps.finals, np.ndarray | dict):
        finals: Observations = mapped(lambda array: array[is_truncated], steps.finals)
        return finals
    return [final for final, wanted in zip(steps.finals, is_truncated, strict=True) if wanted]


def are_of_one_kind(parts: Sequence[States]) -> TypeGuard[Sequence[Observations]]:
    """Return whether ``parts`` are arrays, or arrays by name, that can be joined."""
    kinds_of = [kind_of(part) for part in parts if isinstance(part, np.ndarray | dict)]
    return len(kinds_of) == len(parts) and all(kind == kinds_of[0] for kind in kinds_of)


def kinds(states: Observations) -> str:
    """Return types of numbers and shapes, for people."""
    return named_kinds(mapped(lambda array: f"{array.dtype}{list(array.shape[1:])}", states))


def named_kinds(found: Any) -> str:
    """Return a type of numbers, or types by name, for people."""
    if not isinstance(found, dict):
        return str(found)
    return ", ".join(f"{name!r}: {kind}" for name, kind in found.items())


def _joined(requests: list[Request]) -> tuple[IntArray, Flags, FloatArray]:
    """Return slots [M], flags [M] and rewards [M] of all requests; copies, but for a single one."""
    if len(requests) == 1:
        request = requests[0]
        return request.slots, request.steps.flags, request.steps.rewards
    return (
        np.concatenate([request.slots for request in requests]),
        np.concatenate([request.steps.flags for request in requests]),
        np.concatenate([request.steps.rewards for request in requests]),
    )


def _acting_agents(requests: list[Request]) -> list[AgentName]:
    """Return the agents that want actions; in reports without names these are empty."""
    found: list[AgentName] = []
    for _, steps in requests:
        agents = steps.agents or [UNNAMED_AGENT] * len(steps.flags)
        found += itertools.compress(agents, steps.acting)
    return found


def _are_alike(parts: list[States]) -> TypeGuard[list[Array]]:
    """Return whether ``parts`` are arrays without names that can be joined, as most are."""
    first = parts[0]
    return isinstance(first, np.ndarray) and all(
        isinstance(part, np.ndarray)
        and part.dtype == first.dtype
        and part.shape[1:] == first.shape[1:]
        for part in parts
    )


def _dtype_of(states: Observations) -> Any:
    if isinstance(states, dict):
        return {name: array.dtype for name, array in states.items()}
    return states.dtype
