"""The stage of a curriculum reaches an actor's environments when they are reset."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium

from relaax.client.episode_info import KEY
from relaax.client.gymnasium_factory import Environment
from relaax.client.multi_agent_client import AgentReport
from relaax.client.multi_agent_runner import AgentSpaces
from relaax.client.pettingzoo_environments import PettingZooEnvironment
from relaax.errors import ConfigurationError
from relaax.parameters import Bridge
from relaax.parameters.stage import Stage
from relaax.parameters.training_watch import TrainingWatch
from relaax.telemetry.metrics import STAGE

#: Returns the present stage.
StageSource: TypeAlias = Callable[[], Stage]

#: The name of a stage among the options of a reset.
OPTION = "stage"


def stage_source(address: str, resources: ExitStack) -> StageSource:
    """Return the present stage of the curriculum at a parameter server, until ``resources`` close.

    It is asked several times a second. While it is away the stage stays as it was; the first one is
    waited for. ConfigurationError, when the stage is asked for, where there is no curriculum.
    """
    bridge = resources.enter_context(closing(Bridge(address)))
    resources.enter_context(closing(TrainingWatch(bridge, lambda: 0)))

    def stage() -> Stage:
        found = bridge.stage()
        if found is None:
            raise ConfigurationError(
                f"--curriculum-server: the policy of parameter server {address} has no curriculum"
            )
        return found

    return stage


class StagedEnvironment(gymnasium.Wrapper):  # type: ignore[misc]  # Gymnasium has no types here
    """Resets an environment with the present stage; the episode's numbers have the stage's number.

    ``reset`` of the environment gets ``options={"stage": NAME}``.
    """

    def __init__(self, environment: Environment, stage: StageSource) -> None:
        super().__init__(environment)
        self._stage = stage

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in the present stage."""
        self._now = self._stage()
        more = {**(options or {}), OPTION: self._now.name}
        observation, info = self.env.reset(seed=seed, options=more)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Make a step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        numbers = info.get(KEY, {})
        if isinstance(numbers, Mapping):  # else the reader says so
            info = {**info, KEY: {**numbers, STAGE: self._now.number}}
        return observation, reward, terminated, truncated, info


class StagedAgents:
    """An ``AgentEnvironment`` that starts each game in the present stage; see the class above."""

    def __init__(self, environment: PettingZooEnvironment, stage: StageSource) -> None:
        self._environment = environment
        self._stage = stage
        self.agents = environment.agents

    def spaces_of(self, agents: Sequence[str]) -> AgentSpaces:
        """See ``AgentEnvironment``."""
        return self._environment.spaces_of(agents)

    def restart(self) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        self._now = self._stage()
        self._environment.reset_options = {OPTION: self._now.name}
        return self._environment.restart()

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        reports = self._environment.apply(actions)
        stage = {STAGE: float(self._now.number)}
        return {
            agent: replace(report, episode_info={**report.episode_info, **stage})
            for agent, report in reports.items()
        }

    def close(self) -> None:
        """See ``AgentEnvironment``."""
        self._environment.close()
