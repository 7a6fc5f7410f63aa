"""The agent of one environment."""

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
    InvalidState,
    Metrics,
)
from relaax.observations import mapped
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, read_transitions

_NO_STATES = np.zeros(0, np.float32)


class SingleAgent(AgentBase):
    """A batch of one: the seed's interface to an agent of many environments."""

    def __init__(self, actor: BatchAgentBase, metrics: Metrics) -> None:
        # Without the base class's own, which keeps a configuration for those that read it.
        self._learner: BatchAgentBase = actor
        self._actor: BatchAgentBase = actor
        self._evaluator: EvaluatorBase | None = None
        self._metrics = metrics
        self._slots = np.zeros(1, np.int64)
        self._is_running = np.zeros(1, np.bool_)
        self._dtypes: Any = None
        #: [1, ...]: what the environment executed in the step that is reported next.
        self._executed: npt.NDArray[Any] | None = None
        self._score = 0.0
        actor.open(self._slots)

    def connected(self, environment: EnvironmentInfo) -> None:
        """Introduce the environment to the actor."""
        self._actor.connected(self._slots, [environment])

    def evaluate(self, evaluation: Evaluation) -> None:
        """Let the actor's evaluator act from now on."""
        self._actor = self._evaluator = self._learner.evaluator(evaluation)
        self._actor.open(self._slots)

    def policy(self) -> EvaluatedPolicy | None:
        """Return what the episode is played with, of an agent that evaluates."""
        return None if self._evaluator is None else self._evaluator.policies(self._slots)[0]

    def act(self, state: Any) -> Any:
        """Start an episode; one that was going on was cut off in its last state."""
        self._score = 0.0
        action = self._step(START, 0.0, self._checked(state))
        self._is_running[:] = True
        return action

    def executed(self, action: Any) -> None:
        """Keep the action that was executed for the report of its step."""
        self._executed = self._actor.check_executed([action])

    def reward_and_act(self, reward: float, state: Any) -> Any:
        """Complete the step before and choose an action."""
        self._score += reward
        return self._step(0, reward, self._checked(state))

    def reward_and_reset(self, reward: float) -> float:
        """Complete the last step of an episode and return the episode's uncut rewards' sum."""
        self._score += reward
        self._step(TERMINATED, reward, _NO_STATES)
        self._is_running[:] = False
        return self._score

    def reward_and_truncate(self, reward: float, state: Any) -> None:
        """Complete the last step of an episode that was cut off in ``state``."""
        self._step(TRUNCATED | FINAL, reward, _NO_STATES, self._checked(state))
        self._is_running[:] = False

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics

    def close(self) -> None:
        """Hand on what was begun; end the actor, and its evaluator."""
        if self._evaluator is not None:
            self._evaluator.close()
        self._learner.close_slots(self._slots)
        self._learner.close()

    def _step(self, flags: int, reward: float, states: Any, finals: Any = _NO_STATES) -> Any:
        """Return the action as an int or an array; None at an episode's end."""
        executed, self._executed = self._executed, None
        if executed is not None:
            flags |= EXECUTED
        transitions = read_transitions(
            self._slots, np.array([flags], np.uint8), np.array([reward]), self._is_running
        )
        if executed is not None:
            transitions = transitions._replace(executed_actions=executed)
        actions: Any = self._actor.act(transitions, states, finals)
        if len(actions) == 0:
            return None
        return actions[0].item() if actions.ndim == 1 else actions[0]

    def _checked(self, state: Any) -> Any:
        states = self._actor.check([state])
        dtypes = mapped(lambda part: part.dtype, states)
        if self._dtypes not in (None, dtypes):
            raise InvalidState(f"a state of {dtypes} came after states of {self._dtypes}")
        self._dtypes = dtypes
        return states
