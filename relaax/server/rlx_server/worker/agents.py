"""The agents of a worker's environments, which choose their actions."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import AgentBase, BatchAgentBase, BridgeBase
from relaax.errors import AgentError, InvalidState, RelaaxError
from relaax.metrics import Metrics
from relaax.server.rlx_server.worker.batch import States
from relaax.server.rlx_server.worker.connection import Actions
from relaax.steps import IntArray, Transitions

_log = logging.getLogger(__name__)

Array = npt.NDArray[Any]


_NO_STATES: Array = np.zeros(0, np.float32)


class Agents(Protocol):
    """What a worker asks for actions, by slot."""

    #: Whether requests of several connections may be joined into one call.
    act_together: bool

    def open(self, slots: IntArray) -> None:
        """Take environments that have come; MemoryError when there is no room for them."""

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""

    def check(self, parts: list[States]) -> States:
        """Return the states of all ``parts`` in one; InvalidState for what no network can take.

        It changes nothing.
        """

    def act(self, transitions: Transitions, states: States, finals: States) -> Actions:
        """Return the actions [A] of those environments that want one, in their order.

        states: [A, ...] and finals: [F, ...], of those that act and of truncated episodes, checked.
        """

    def metrics(self) -> Metrics:
        """Return where scalars go."""

    def close(self) -> None:
        """Release what the agents hold."""


class BatchAgents:
    """One batch agent for all environments: an evaluation of the network answers them together.

    They have one kind of observation; others are refused while any of them is there.
    """

    act_together = True

    def __init__(self, agent: BatchAgentBase, stub: BridgeBase) -> None:
        """Own ``agent`` and ``stub``."""
        self._agent = agent
        self._stub = stub
        self._environments = 0
        self._dtype: np.dtype[Any] | None = None

    def open(self, slots: IntArray) -> None:
        """Make room for more environments."""
        self._agent.open(slots)
        self._environments += len(slots)

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments; after the last one any kind of observation may come."""
        self._agent.close_slots(slots)
        self._environments -= len(slots)
        if self._environments == 0:
            self._dtype = None

    def check(self, parts: list[States]) -> States:
        """Join states of one kind and check them at once; all others one by one."""
        if not parts:
            return _NO_STATES
        if len(parts) == 1:
            return self._checked(parts[0])
        if _are_of_one_kind(parts):
            return self._checked(np.concatenate(parts))
        checked = [self._checked(part) for part in parts]
        if not _are_of_one_kind(checked):
            raise InvalidState("environments report observations of different kinds")
        return np.concatenate(checked)

    def act(self, transitions: Transitions, states: States, finals: States) -> Actions:
        """Choose for all at once."""
        checked = np.asarray(states)
        if len(checked):
            self._dtype = checked.dtype
        return self._agent.act(transitions, checked, np.asarray(finals))

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._stub.metrics()

    def close(self) -> None:
        """End the agent, and send the metrics that are left."""
        self._agent.close()
        self._stub.close()

    def _checked(self, states: States) -> Array:
        checked = self._agent.check(states)
        if self._dtype is not None and checked.dtype != self._dtype:
            raise InvalidState(
                f"observations are {checked.dtype}{list(checked.shape[1:])}, those of the other "
                f"environments here are {self._dtype}"
            )
        return checked


class SeparateAgents:
    """An agent for each environment, for algorithms without batches."""

    act_together = False

    def __init__(self, make_agent: Callable[[int], AgentBase], stub: BridgeBase) -> None:
        """Own ``stub``; ``make_agent`` is called with 0, 1, 2 and so on."""
        self._make_agent = make_agent
        self._stub = stub
        self._made = 0
        self._agents: dict[int, AgentBase] = {}

    def open(self, slots: IntArray) -> None:
        """Make an agent for each slot."""
        made: list[AgentBase] = []
        try:
            for _ in slots:
                made.append(self._make_agent(self._made))
                self._made += 1
        except MemoryError:
            for agent in made:
                _close(agent)
            raise
        self._agents.update(zip(slots.tolist(), made, strict=True))

    def close_slots(self, slots: IntArray) -> None:
        """Close the agents of ``slots``."""
        for slot in slots.tolist():
            _close(self._agents.pop(slot))

    def check(self, parts: list[States]) -> States:
        """Leave the states to the agents, which check them when they act."""
        return [state for part in parts for state in part]

    def act(self, transitions: Transitions, states: States, finals: States) -> list[Any]:
        """Ask one agent after the other.

        InvalidState for a state that one of them refuses, AgentError when one of them fails.
        """
        try:
            return self._act(transitions, states, finals)
        except (RelaaxError, MemoryError):
            raise
        except Exception as error:  # whatever an algorithm's own code raises
            _log.exception("an agent failed")
            raise AgentError(f"the agent failed: {type(error).__name__}: {error}") from error

    def _act(self, transitions: Transitions, states: States, finals: States) -> list[Any]:
        rewards = dict(zip(transitions.stepped.tolist(), transitions.rewards.tolist(), strict=True))
        last_states = dict(zip(transitions.truncated.tolist(), finals, strict=True))
        for slot in transitions.ended.tolist():
            if slot in last_states:
                self._agents[slot].reward_and_act(rewards[slot], last_states[slot])
            else:
                self._agents[slot].reward_and_reset(rewards[slot])
        return [
            self._agents[slot].act(state)
            if starts
            else self._agents[slot].reward_and_act(rewards[slot], state)
            for slot, starts, state in zip(
                transitions.acting.tolist(), transitions.starts.tolist(), states, strict=True
            )
        ]

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._stub.metrics()

    def close(self) -> None:
        """Close all agents, and send the metrics that are left."""
        for agent in self._agents.values():
            _close(agent)
        self._agents.clear()
        self._stub.close()


def _close(agent: AgentBase) -> None:
    try:
        agent.close()
    except Exception:  # whatever an algorithm's own code raises: the others are closed all the same
        _log.exception("an agent failed to close")


def _are_of_one_kind(parts: Sequence[States]) -> bool:
    first = parts[0]
    return isinstance(first, np.ndarray) and all(
        isinstance(part, np.ndarray)
        and part.dtype == first.dtype
        and part.shape[1:] == first.shape[1:]
        for part in parts
    )
