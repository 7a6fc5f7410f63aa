"""The agents of one connection, in the worker: one object for all of its environments."""

from typing import Any, Protocol

import numpy as np

from relaax.algorithm_base import AgentBase, BatchAgentBase, PreprocessorBase
from relaax.metrics import Metrics
from relaax.protocol.binary import MAX_ENVIRONMENTS
from relaax.server.rlx_server.conversation import Actions
from relaax.steps import ENDED, FINAL, START, TRUNCATED, Steps


class ConnectionAgents(Protocol):
    """What a worker asks for actions."""

    def act(self, steps: Steps) -> Actions:
        """Return the actions of those environments that want one, in their order."""

    def metrics(self) -> Metrics:
        """Return where scalars go."""

    def close(self) -> None:
        """Release what the agents hold."""


class SeparateAgents:
    """An agent for each environment, for algorithms that know no batches."""

    def __init__(self, agents: list[AgentBase]) -> None:
        self._agents = agents

    def act(self, steps: Steps) -> list[Any]:
        """Ask one after the other."""
        states, finals = iter(steps.observations), iter(steps.finals)
        actions = []
        for environment, flags, reward in zip(
            steps.environments.tolist(), steps.flags.tolist(), steps.rewards.tolist(), strict=True
        ):
            agent = self._agents[environment]
            final = next(finals) if flags & FINAL else None
            if flags & TRUNCATED:
                agent.reward_and_act(reward, final)
            elif flags & ENDED:
                agent.reward_and_reset(reward)
            if flags & START:
                actions.append(agent.act(next(states)))
            elif not flags & ENDED:
                actions.append(agent.reward_and_act(reward, next(states)))
        return actions

    def metrics(self) -> Metrics:
        """Return where scalars go: the same for all."""
        return self._agents[0].metrics()

    def close(self) -> None:
        """Close all."""
        for agent in self._agents:
            agent.close()


class InlineAgents:
    """The network in this worker: one evaluation for each message."""

    def __init__(
        self,
        preprocessor: PreprocessorBase,
        batch_agent: BatchAgentBase,
        environments: int,
        metrics: Metrics,
    ) -> None:
        self._preprocessor = preprocessor
        self._batch_agent = batch_agent
        self._slots = batch_agent.open(environments)
        self._metrics = metrics

    def act(self, steps: Steps) -> Actions:
        """Preprocess and act."""
        observations, finals = preprocess(self._preprocessor, steps)
        return self._batch_agent.act(
            Steps(
                self._slots[steps.environments],
                steps.flags,
                steps.rewards,
                observations,
                finals,
                steps.is_plain,
            )
        )

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics

    def close(self) -> None:
        """Close the agent."""
        self._batch_agent.close()


_NO_STARTS = np.zeros(MAX_ENVIRONMENTS, np.bool_)


def preprocess(preprocessor: PreprocessorBase, steps: Steps) -> tuple[Any, Any]:
    """Return the observations and final observations of ``steps``, preprocessed."""
    environments, flags = steps.environments, steps.flags
    if steps.is_plain or not flags.any():
        starts = _NO_STARTS[: len(environments)]
        return preprocessor.observe(environments, starts, steps.observations), ()
    finals: Any = ()
    has_final = steps.has_final
    if has_final.any():
        ended = environments[has_final]
        finals = preprocessor.observe(ended, _NO_STARTS[: len(ended)], steps.finals)
    acting = steps.acting
    if not acting.any():
        return (), finals
    starts = (flags[acting] & START) != 0
    return preprocessor.observe(environments[acting], starts, steps.observations), finals
