"""The agents of a parallel PettingZoo environment as one: a Gymnasium environment of a team."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client.action_masks import ACTION_MASK, OBSERVATION, as_mask
from relaax.client.gymnasium_factory import Environment, Environments
from relaax.client.pettingzoo_environments import PettingZooFactory, agents_of
from relaax.errors import ConfigurationError

Array = npt.NDArray[Any]

#: The reward of a team: the mean or the sum of its agents' rewards.
TeamReward = Literal["mean", "sum"]

#: The name of the environment's own state, beside what agents observe.
STATE = "state"

_REWARDS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda rewards: float(np.mean(rewards)),
    "sum": lambda rewards: float(np.sum(rewards)),
}


class Team(gymnasium.Env[Any, Any]):  # type: ignore[misc]  # Gymnasium has no types here
    """Agents that act at the same time, begin and end together, and share a reward.

    An observation is one vector: that of each agent, flattened, in the order of
    ``possible_agents``. ``has_state``: it is a dict of this vector, ``observation``, and of what
    the environment's ``state()`` returns, ``state``. An action is a number for each agent. Masks of
    agents, in their observations or infos, are ``info["action_mask"]``, one behind the other.

    ConfigurationError for agents that observe images, whose actions are no Discrete, who begin or
    end without the others, and for an environment without the state that is asked for.
    """

    def __init__(self, environment: Any, reward: TeamReward, has_state: bool = False) -> None:
        self._environment = environment
        self._agents = agents_of(environment)
        self._reward_of, self._has_state = _REWARDS[reward], has_state
        of_agents = [environment.observation_space(agent) for agent in self._agents]
        self._spaces = [_vector_space(*each) for each in zip(self._agents, of_agents, strict=True)]
        joint = _joined([spaces.flatten_space(space) for space in self._spaces])
        self.observation_space: Any = joint
        if has_state:
            self.observation_space = spaces.Dict({OBSERVATION: joint, STATE: _state(environment)})
        choices = [_choice(agent, environment.action_space(agent)) for agent in self._agents]
        starts = np.array([choice.start for choice in choices])
        counts = np.array([choice.n for choice in choices])
        self.action_space = spaces.MultiDiscrete(counts, start=starts)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """See Gymnasium."""
        super().reset(seed=seed)
        more = {"options": options} if options else {}
        seen, infos = self._environment.reset(seed=seed, **more)
        self._require_all("begin", seen)
        return self._observed(seen), self._info(seen, infos)

    def step(self, action: Array) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """See Gymnasium; an episode is terminated where it is for all agents."""
        actions = dict(zip(self._agents, np.asarray(action).tolist(), strict=True))
        seen, rewards, terminated, truncated, infos = self._environment.step(actions)
        self._require_all("are there after a step", seen)
        over = [agent for agent in self._agents if terminated[agent] or truncated[agent]]
        if over:
            self._require_all("end", over)
        is_terminated = all(terminated[agent] for agent in self._agents)
        reward = self._reward_of([float(rewards[agent]) for agent in self._agents])
        is_truncated = bool(over) and not is_terminated
        info = self._info(seen, infos, is_over=bool(over))
        return self._observed(seen), reward, is_terminated, is_truncated, info

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()

    def _require_all(self, what: str, agents: Any) -> None:
        missing = [agent for agent in self._agents if agent not in agents]
        if missing:
            raise ConfigurationError(
                f"the agents of a team begin and end together: {', '.join(agents)} {what}, and "
                f"{', '.join(missing)} not; play it without --team"
            )

    def _observed(self, seen: Mapping[str, Any]) -> Any:
        parts = [
            spaces.flatten(space, _beside_mask(seen[agent]))
            for agent, space in zip(self._agents, self._spaces, strict=True)
        ]
        joint = np.concatenate(parts).astype(_dtype_of(self.observation_space), copy=False)
        if not self._has_state:
            return joint
        return {OBSERVATION: joint, STATE: np.asarray(self._environment.state())}

    def _info(
        self, seen: Mapping[str, Any], infos: Mapping[str, Any], is_over: bool = False
    ) -> dict[str, Any]:
        """Return the masks; one at the end that allows nothing allows all: no action follows."""
        found = [_mask_of(seen[agent], infos.get(agent, {})) for agent in self._agents]
        if any(mask is None for mask in found):
            return {}
        masks = [as_mask(mask) for mask in found]
        if is_over:
            masks = [mask if mask.any() else np.ones_like(mask) for mask in masks]
        return {ACTION_MASK: np.concatenate(masks)}


@dataclass(frozen=True)
class TeamFactory:
    """Makes teams of a PettingZoo environment: one, or several that step together."""

    factory: PettingZooFactory
    reward: TeamReward = "mean"
    has_state: bool = False

    def __call__(self) -> Environment:
        """Return a new environment."""
        return Team(self.factory.made("parallel"), self.reward, self.has_state)

    def vector(self, count: int) -> Environments:
        """Return ``count`` environments that step together."""
        return SyncVectorEnv([self] * count, autoreset_mode=AutoresetMode.SAME_STEP)


def _vector_space(agent: str, space: Any) -> Any:
    """Return what an agent observes beside a mask; ConfigurationError for what is no vector."""
    if isinstance(space, spaces.Dict) and ACTION_MASK in space.spaces:
        space = space[OBSERVATION]
    is_image = isinstance(space, spaces.Box) and len(space.shape) > 1
    if is_image or not isinstance(spaces.flatten_space(space), spaces.Box):
        raise ConfigurationError(
            f"the observations of a team are joined to one vector, and {agent} observes {space}; "
            "play it without --team"
        )
    return space


def _joined(parts: Sequence[Any]) -> spaces.Box:
    dtype = np.result_type(*(part.dtype for part in parts))
    low, high = (np.concatenate([getattr(p, name) for p in parts]) for name in ("low", "high"))
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type)


def _state(environment: Any) -> Any:
    space = getattr(environment, "state_space", None)
    if not isinstance(space, spaces.Box):
        raise ConfigurationError(f"--state: the environment's state_space is {space}, and no Box")
    return space


def _choice(agent: str, space: Any) -> Any:
    if not isinstance(space, spaces.Discrete):
        raise ConfigurationError(
            f"the actions of a team are numbers of a Discrete, and {agent} acts in {space}; play "
            "it without --team"
        )
    return space


def _dtype_of(space: Any) -> Any:
    return (space[OBSERVATION] if isinstance(space, spaces.Dict) else space).dtype


def _beside_mask(seen: Any) -> Any:
    return seen[OBSERVATION] if isinstance(seen, Mapping) and ACTION_MASK in seen else seen


def _mask_of(seen: Any, info: Mapping[str, Any]) -> Any:
    if isinstance(seen, Mapping) and ACTION_MASK in seen:
        return seen[ACTION_MASK]
    return info.get(ACTION_MASK)
