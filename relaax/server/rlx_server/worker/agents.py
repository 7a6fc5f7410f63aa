"""The agents of a worker: a batch agent of the algorithm, or an agent for each slot."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    AgentBase,
    BatchAgentBase,
    EnvironmentInfo,
    EvaluatedPolicy,
    Evaluation,
    EvaluatorBase,
    ParameterLink,
)
from relaax.errors import AgentError, RelaaxError
from relaax.observations import Observations
from relaax.steps import IntArray, States, Transitions, number_of
from relaax.telemetry.throttled_log import FailureLog, in_words

_log = logging.getLogger(__name__)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Agents:
    """The agents for all slots, and their way to the parameter server."""

    batch_agent: BatchAgentBase
    stub: ParameterLink
    #: Whether requests of several connections may be joined into one call.
    act_together: bool
    #: The seed of the first environment, below 2**32; the next one gets the one after it.
    first_seed: int = 0
    #: The agent whose evaluator acts; None where ``batch_agent`` acts for itself.
    owner: BatchAgentBase | None = None
    #: Whether the stub belongs to others.
    borrows_stub: bool = False

    def evaluator(self, evaluation: Evaluation) -> EvaluatorBase:
        """Return another agent, which evaluates; InvalidState if there is none."""
        return (self.owner or self.batch_agent).evaluator(evaluation)

    def close(self) -> None:
        """End the agents, and send the metrics that are left."""
        self.batch_agent.close()
        if self.owner is not None:
            self.owner.close()
        if not self.borrows_stub:
            self.stub.close()


class SeparateAgents(BatchAgentBase):
    """An agent for each environment, for algorithms without batches.

    ``make_agent`` is called with 0, 1, 2 and so on. States are of any kind, in arrays of objects.
    Exceptions of agents are added to ``failures``.
    """

    def __init__(self, make_agent: Callable[[int], AgentBase], failures: FailureLog) -> None:
        self._make_agent = make_agent
        self._made = 0
        self._agents: dict[int, AgentBase] = {}
        self._failures = failures

    def open(self, slots: IntArray) -> None:
        """Make an agent for each slot.

        AgentError when an agent cannot be made, or its own exception; all agents are closed then.
        """
        made: list[AgentBase] = []
        try:
            with self._failing_as("making the agent"):
                for _ in slots:
                    made.append(self._next_agent())
        except BaseException:
            for agent in made:
                _close(agent)
            raise
        self._agents.update(zip(slots.tolist(), made, strict=True))

    def evaluator(self, evaluation: Evaluation) -> EvaluatorBase:
        """Return evaluating agents; InvalidState later if they cannot evaluate."""
        return SeparateEvaluators(self._next_agent, evaluation, self._failures)

    def _next_agent(self) -> AgentBase:
        """Make an agent, with a number that no other one has."""
        agent = self._make_agent(self._made)
        self._made += 1
        return agent

    def connected(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Introduce each environment to its agent."""
        with self._failing_as("the agent"):
            for slot, environment in zip(slots.tolist(), environments, strict=True):
                self._agents[slot].connected(environment)

    def close_slots(self, slots: IntArray) -> None:
        """Close the agents of ``slots``."""
        for slot in slots.tolist():
            _close(self._agents.pop(slot))

    def check(self, states: States) -> Array:
        """Leave the states [B] to the agents, which check them when they act.

        Of arrays by name each state is a dict. Each agent may keep its state: views of a message
        are copied.
        """
        kept = np.empty(number_of(states), np.object_)
        for index, state in enumerate(_rows_of(states) if isinstance(states, dict) else states):
            kept[index] = _own(state)
        return kept

    def check_executed(self, actions: Sequence[Any] | Array) -> Array:
        """Leave the actions [X] to the agents, which refuse unusable ones."""
        kept = np.empty(len(actions), np.object_)
        for index, action in enumerate(actions):
            kept[index] = _own(action)
        return kept

    def act(
        self, transitions: Transitions, states: Observations, finals: Observations
    ) -> list[Any]:
        """Ask one agent after the other.

        InvalidState if an agent refuses its state, AgentError when an agent fails.
        """
        with self._failing_as("the agent"):
            return self._act(transitions, states, finals)

    @contextmanager
    def _failing_as(self, what: str) -> Iterator[None]:
        """Raise an AgentError for an exception of an algorithm's code; log the traceback once."""
        try:
            yield
        except (RelaaxError, MemoryError):
            raise
        except Exception as error:  # any exception of an algorithm's own code
            self._failures.add(what, error)
            raise AgentError(f"{what} failed: {in_words(error)}") from error

    def _act(
        self, transitions: Transitions, states: Observations, finals: Observations
    ) -> list[Any]:
        rewards = dict(zip(transitions.stepped.tolist(), transitions.rewards.tolist(), strict=True))
        last_states = dict(zip(transitions.truncated.tolist(), finals, strict=True))
        executed = zip(transitions.executed.tolist(), transitions.executed_actions, strict=True)
        for slot, action in executed:
            self._agents[slot].executed(action)
        for slot in transitions.ended.tolist():
            if slot in last_states:
                self._agents[slot].reward_and_truncate(rewards[slot], last_states[slot])
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

    def close(self) -> None:
        """Close all agents."""
        for agent in self._agents.values():
            _close(agent)
        self._agents.clear()


class SeparateEvaluators(SeparateAgents, EvaluatorBase):
    """An agent for each environment, which is told to evaluate before all else."""

    def __init__(
        self, make_agent: Callable[[], AgentBase], evaluation: Evaluation, failures: FailureLog
    ) -> None:
        super().__init__(lambda _: _evaluating(make_agent(), evaluation), failures)

    def policies(self, slots: IntArray) -> list[EvaluatedPolicy | None]:
        """Ask one agent after the other."""
        with self._failing_as("the agent"):
            return [self._agents[slot].policy() for slot in slots.tolist()]


def _evaluating(agent: AgentBase, evaluation: Evaluation) -> AgentBase:
    """Return ``agent``, told to evaluate; it is closed if it cannot."""
    try:
        agent.evaluate(evaluation)
    except BaseException:
        _close(agent)
        raise
    return agent


def _rows_of(states: dict[str, Array]) -> Iterator[dict[str, Any]]:
    """Return each environment's own dict of arrays [B, ...] by name."""
    for values in zip(*states.values(), strict=True):
        yield dict(zip(states, values, strict=True))


def _own(state: Any) -> Any:
    """Return a state that does not lie in a message: a plain number, or an array of its own."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if isinstance(state, dict):
        return {name: _own(part) for name, part in state.items()}
    return state.item() if isinstance(state, np.generic) else state


def _close(agent: AgentBase) -> None:
    try:
        agent.close()
    except (
        Exception
    ):  # any exception of an algorithm's own code: the others are closed all the same
        _log.exception("an agent failed to close")
