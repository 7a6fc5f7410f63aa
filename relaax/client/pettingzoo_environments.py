"""PettingZoo's environments, in which agents act in turns (AEC) or at the same time (parallel)."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from relaax.client.action_masks import ACTION_MASK, MaskedState, MaskReader
from relaax.client.checks import single_flag, single_number
from relaax.client.episode_info import EpisodeInfoReader
from relaax.client.gymnasium_actions import action_decoder, action_space_as_json
from relaax.client.gymnasium_observations import observation_space_as_json, state_encoder
from relaax.client.multi_agent_client import AgentReport
from relaax.client.multi_agent_runner import AgentSpaces, merged
from relaax.client.simulator import RunObserver
from relaax.errors import ConfigurationError
from relaax.observations import mapped

#: PettingZoo's two interfaces.
Api = Literal["aec", "parallel"]

#: The functions of a module that make an environment.
_FUNCTIONS: dict[Api, str] = {"aec": "env", "parallel": "parallel_env"}


class PettingZooEnvironment(ABC):
    """A PettingZoo environment for a ``MultiAgentRunner``; the first game gets ``seed``.

    ConfigurationError where there is no list of all agents that there may be, and for spaces that
    cannot be sent. ``apply`` raises ``UnusableAction`` when the server's actions do not fit.
    """

    def __init__(
        self, environment: Any, seed: int | None, observer: RunObserver | None = None
    ) -> None:
        self._environment = environment
        self._seed = seed
        self.agents: Sequence[str] = agents_of(environment)
        self._encode = {
            agent: state_encoder(environment.observation_space(agent)) for agent in self.agents
        }
        self._decode = {
            agent: action_decoder(environment.action_space(agent)) for agent in self.agents
        }
        doubt = (observer or RunObserver()).on_doubt
        self._masks = MaskReader(doubt)
        self._numbers = EpisodeInfoReader(doubt)
        #: What ``reset`` of the environment gets as ``options``; None for an environment's own.
        self.reset_options: dict[str, Any] | None = None
        #: Those whose episode goes on.
        self._playing: set[str] = set()

    def spaces_of(self, agents: Sequence[str]) -> AgentSpaces:
        """See ``AgentEnvironment``."""
        made = self._environment
        return AgentSpaces(
            observation_space_as_json(_one_space("observe", agents, made.observation_space)),
            action_space_as_json(_one_space("act", agents, made.action_space)),
        )

    @abstractmethod
    def restart(self) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""

    @abstractmethod
    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()

    def _reset(self) -> Any:
        self._playing.clear()
        seed, self._seed = self._seed, None
        more = {} if self.reset_options is None else {"options": self.reset_options}
        return self._environment.reset(seed=seed, **more)

    def _report(
        self, agent: str, reward: Any, is_terminated: bool, is_truncated: bool, seen: Any, info: Any
    ) -> AgentReport | None:
        """Return an agent's report; None of one that leaves before it has acted."""
        starts = agent not in self._playing
        if is_terminated or is_truncated:
            self._playing.discard(agent)
            final = None if is_terminated else _final(self._state(agent, seen, info))
            earned = single_number("the reward", reward)
            numbers = self._numbers.of(info)
            end = AgentReport(None, earned, False, is_terminated, is_truncated, final, numbers)
            return None if starts else end
        self._playing.add(agent)
        earned = 0.0 if starts else single_number("the reward", reward)
        state = self._state(agent, seen, info)
        return AgentReport(state, earned, starts, episode_info=self._numbers.of(info))

    def _state(self, agent: str, seen: Any, info: Any) -> Any:
        """Return a copy, with its mask: it is sent after other agents' steps."""
        return self._masks.beside(mapped(np.array, self._encode[agent](seen)), info)


class TurnEnvironment(PettingZooEnvironment):
    """An AEC environment: one agent acts at a time, as often as the game lets it.

    PettingZoo sums up an agent's rewards until its next turn. Those before its first turn are of no
    action, and are left out.
    """

    def restart(self) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        self._reset()
        return self._until_a_turn()

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        ((agent, action),) = actions.items()
        self._environment.step(self._decode[agent](action))
        return self._until_a_turn()

    def _until_a_turn(self) -> dict[str, AgentReport]:
        """Return the ends of agents, up to the report of one that wants an action."""
        reports: dict[str, AgentReport] = {}
        while self._environment.agents:
            agent = self._environment.agent_selection
            seen, reward, terminated, truncated, info = self._environment.last()
            is_terminated = single_flag("terminated", terminated)
            is_truncated = single_flag("truncated", truncated)
            report = self._report(agent, reward, is_terminated, is_truncated, seen, info)
            if report is not None:
                reports = merged(reports, {agent: report})
            if not (is_terminated or is_truncated):
                return reports
            self._environment.step(None)  # an agent that has left
        return reports


class ParallelEnvironment(PettingZooEnvironment):
    """A parallel environment: all agents that are there act at the same time."""

    def restart(self) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        seen, infos = self._reset()
        return self._reports(seen, {}, {}, {}, infos)

    def apply(self, actions: Mapping[str, Any]) -> dict[str, AgentReport]:
        """See ``AgentEnvironment``."""
        made = {agent: self._decode[agent](action) for agent, action in actions.items()}
        return self._reports(*self._environment.step(made))

    def _reports(
        self,
        seen: Mapping[str, Any],
        rewards: Mapping[str, Any],
        terminated: Mapping[str, Any],
        truncated: Mapping[str, Any],
        infos: Mapping[str, Any],
    ) -> dict[str, AgentReport]:
        reports = {
            agent: self._report(
                agent,
                rewards.get(agent, 0.0),
                single_flag("terminated", terminated.get(agent)),
                single_flag("truncated", truncated.get(agent)),
                seen[agent],
                infos.get(agent, {}),
            )
            for agent in seen
        }
        return {agent: report for agent, report in reports.items() if report is not None}


@dataclass(frozen=True)
class PettingZooFactory:
    """Makes an environment: of PettingZoo's registry (``classic/tictactoe-v3``), or of a module.

    A module (``mpe2.simple_spread_v3``) has functions ``parallel_env`` or ``env``. ``api``:
    parallel where there is one, unless it is said. ConfigurationError where there is none.
    """

    env_id: str
    kwargs: dict[str, Any]
    api: Api | None = None

    def __call__(
        self, seed: int | None, observer: RunObserver | None = None
    ) -> PettingZooEnvironment:
        """Return a new environment."""
        wanted: list[Api] = ["parallel", "aec"] if self.api is None else [self.api]
        api, environment = self._first_of(wanted)
        kind = ParallelEnvironment if api == "parallel" else TurnEnvironment
        return kind(environment, seed, observer)

    def made(self, api: Api) -> Any:
        """Return a new environment with PettingZoo's own interface ``api``."""
        return self._first_of([api])[1]

    def _first_of(self, wanted: Sequence[Api]) -> tuple[Api, Any]:
        makers = self._registered() if "/" in self.env_id else self._of_module()
        for api in wanted:
            if api in makers:
                return api, makers[api](**self.kwargs)
        raise ConfigurationError(
            f"{self.env_id} has no interface of {' or '.join(wanted)}; those that it has: "
            f"{', '.join(makers) or 'no others'}"
        )

    def _registered(self) -> Mapping[Api, Callable[..., Any]]:
        import pettingzoo  # only here: a module of your own need not have it

        registries = {"aec": pettingzoo.aec_registry, "parallel": pettingzoo.parallel_registry}
        return {
            api: partial(pettingzoo.make, api, self.env_id)
            for api in get_args(Api)
            if self.env_id in registries[api]
        }

    def _of_module(self) -> Mapping[Api, Callable[..., Any]]:
        try:
            module = importlib.import_module(self.env_id)
        except ImportError as error:
            raise ConfigurationError(f"no module {self.env_id} can be imported: {error}") from error
        found = {api: getattr(module, name, None) for api, name in _FUNCTIONS.items()}
        return {api: function for api, function in found.items() if function is not None}


def agents_of(environment: Any) -> list[str]:
    """Return all agents that there may be; ConfigurationError where they are not known."""
    agents = getattr(environment, "possible_agents", None)
    if not agents:
        raise ConfigurationError(
            "the environment has no possible_agents: the names of all agents that may ever be there"
        )
    return [str(agent) for agent in agents]


def _one_space(what: str, agents: Sequence[str], space_of: Any) -> Any:
    """Return the space of these agents; ConfigurationError where two have different ones."""
    first, *others = agents
    for other in others:
        if space_of(other) != space_of(first):
            raise ConfigurationError(
                f"agents of one policy must have the same spaces: {first} and {other} {what} in "
                f"{space_of(first)} and {space_of(other)}"
            )
    return space_of(first)


def _final(state: Any) -> Any:
    """Return the last state of an agent that was cut off, in which it may have had no turn.

    A mask that allows nothing then allows everything: no action follows, and no mask may be empty.
    """
    if isinstance(state, MaskedState) and state.mask is not None and not state.mask.any():
        return MaskedState(state.state, np.ones_like(state.mask), state.dropped)
    if isinstance(state, dict) and ACTION_MASK in state and not state[ACTION_MASK].any():
        return {**state, ACTION_MASK: np.ones_like(state[ACTION_MASK])}
    return state
