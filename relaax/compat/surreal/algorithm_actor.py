"""Acts with the agent of an algorithm, as a worker of the RLX server does."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, ConfigBase, EvaluatedPolicy, FloatVector
from relaax.client.gymnasium_executed import EXECUTED_ACTION
from relaax.compat.surreal.actor import Actor
from relaax.compat.surreal.module_dict import Module, ParameterArrays
from relaax.compat.surreal.pulled_bridge import PulledBridge
from relaax.compat.surreal.session import ActorMode, ActorSession, require_mode
from relaax.errors import ConfigurationError

#: The name of all that an agent of an algorithm acts with.
POLICY = "policy"


class AlgorithmActor(Actor):
    """An actor whose ``agent`` chooses, records and delivers, and counts as in a worker.

    ``bridge`` is what the agent was made with: it gets the parameters that are fetched.
    """

    sends_experience = False
    measures_use = False

    def __init__(
        self,
        config: ConfigBase,
        session: ActorSession,
        actor_id: int,
        actor_mode: ActorMode,
        agent: AgentBase,
        bridge: PulledBridge,
    ) -> None:
        super().__init__(config, session, actor_id, actor_mode)
        self._agent = agent
        self._bridge = bridge
        #: What the action before has earned; None before an episode's first action.
        self._reward: float | None = None

    def module_dict(self) -> Mapping[str, Module]:
        """Return the parameters in use."""
        return {POLICY: np.array(self._bridge.get_values().vector, np.float32)}

    def split(self, vector: FloatVector) -> ParameterArrays:
        """Return the parameters as they are: what they mean is the agent's own."""
        return {POLICY: vector}

    def load(self, parameters: ParameterArrays) -> None:
        """Let the agent act with other parameters."""
        self._bridge.use(np.ascontiguousarray(parameters[POLICY], np.float32))

    def fetch_parameter(self) -> None:
        """Fetch, and let the agent know the global step, which is new where parameters are not."""
        super().fetch_parameter()
        self._bridge.note_global_t()

    def pre_episode(self) -> None:
        """Begin with no action before."""
        super().pre_episode()
        self._reward = None

    def act(self, obs: Any) -> Any:
        """Let the agent choose."""
        if self._reward is None:
            return self._agent.act(obs)
        return self._agent.reward_and_act(self._reward, obs)

    def post_action(
        self, obs: Any, action: Any, obs_next: Any, reward: float, done: bool, info: dict[str, Any]
    ) -> None:
        """Report an episode's end; other rewards are reported with the next state."""
        super().post_action(obs, action, obs_next, reward, done, info)
        if EXECUTED_ACTION in info:
            self._agent.executed(info[EXECUTED_ACTION])
        self._reward = reward
        if done and info["truncated"]:
            self._agent.reward_and_truncate(reward, obs_next)
        elif done:
            self._agent.reward_and_reset(reward)

    def set_actor_mode(self, actor_mode: str) -> None:
        """Stay in the mode that the agent was made for; ConfigurationError for another one."""
        if require_mode(actor_mode) != self.actor_mode:
            raise ConfigurationError(
                f"this agent acts for {self.actor_mode}: make another actor for {actor_mode}"
            )

    def policy(self) -> EvaluatedPolicy | None:
        """Return what the agent says."""
        return self._agent.policy()

    def close(self) -> None:
        """End the agent."""
        super().close()
        self._agent.close()
