"""Environment and policy in one process; seed 000, "Actor class"."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from relaax.algorithm_base import ConfigBase, EvaluatedPolicy, FloatVector, PublishedInfo
from relaax.client.action_masks import MaskReader, named_state
from relaax.client.checks import single_flag, single_number
from relaax.client.episode_info import EpisodeInfoReader
from relaax.client.gymnasium_actions import EXECUTED_ACTION, ExecutedActionReader, action_decoder
from relaax.client.gymnasium_edges import keep_observations
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import state_encoder
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.compat.surreal.experience import Acted, ExperienceSender, columns_of
from relaax.compat.surreal.module_dict import Module, ModuleDict, ParameterArrays
from relaax.compat.surreal.session import TRAINING, ActorMode, ActorSession, require_mode
from relaax.spaces import Space
from relaax.telemetry.interval_metrics import IntervalMetrics


class Outcome(NamedTuple):
    """What an action led to."""

    #: An array, or arrays by name.
    state: Any
    reward: float
    #: Nothing can be earned any more.
    terminated: bool
    #: The episode was cut off here, and could have gone on.
    truncated: bool
    info: dict[str, Any]
    #: The action that was executed in the place of the one that was taken; None if that one was.
    executed: Any = None

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended, in one way or the other."""
        return self.terminated or self.truncated


class ActorEnvironment:
    """Encodes the observations of a Gymnasium environment, and decodes actions, as clients do."""

    def __init__(
        self,
        environment: Environment,
        asked: Space | None = None,
        observer: RunObserver | None = None,
    ) -> None:
        self.environment = keep_observations(environment)
        #: What the algorithm takes as observations, which names the mask of actions.
        self._asked = asked
        self._masks = MaskReader((observer or RunObserver()).on_doubt)
        self._encode = state_encoder(environment.observation_space)
        self._decode = action_decoder(environment.action_space)
        self._executed = ExecutedActionReader(environment.action_space)
        self.numbers = EpisodeInfoReader((observer or RunObserver()).on_doubt)

    def reset(self, seed: int | None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return its first state and what else is known of it."""
        observation, info = self.environment.reset(seed=seed)
        return self._seen(observation, info), info

    def step(self, action: Any) -> Outcome:
        """Take an action; ``UnusableAction`` for one that does not fit."""
        number = action.item() if isinstance(action, np.generic) else action
        made = self._decode(number)
        observation, reward, *ended, info = self.environment.step(made)
        terminated, truncated = map(single_flag, ("terminated", "truncated"), ended)
        return Outcome(
            state=self._encode(observation) if terminated else self._seen(observation, info),
            reward=single_number("the reward", reward),
            terminated=terminated,
            truncated=truncated and not terminated,
            info=info,
            executed=self._executed.of_one(info, made, number),
        )

    def _seen(self, observation: Any, info: dict[str, Any]) -> Any:
        return named_state(self._masks.beside(self._encode(observation), info), self._asked)


def limited(environment: Environment, steps: int | None) -> Environment:
    """Return ``environment`` with its episodes cut off, not terminated, after so many ``steps``."""
    if steps is None:
        return environment
    return gymnasium.wrappers.TimeLimit(environment, steps)


class Actor(ABC):
    """Acts in an environment of its own process, and hands its steps on.

    Derive from it, with ``act`` and ``module_dict``. ``main`` calls, in this order::

        fetch_parameter()
        for each episode:
            pre_episode()
            obs = the environment's first state
            until the episode is over:
                pre_action(obs)
                action = act(obs)
                post_action(obs, action, obs_next, reward, done, info)
            post_episode()

    A hook that you override calls ``super()`` of its name. While the mode is ``training``, steps go
    to the session's experience, and parameters are fetched by its pull rule; in the other modes
    steps go nowhere, and parameters are fetched before each episode: it is played with one version.

    States are arrays, or dicts of arrays by name; what is stored of a step follows from the spaces
    of ``config``.
    """

    def __init__(
        self,
        config: ConfigBase,
        session: ActorSession,
        actor_id: int = 0,
        actor_mode: ActorMode = TRAINING,
    ) -> None:
        self.config = config
        self.session = session
        self.actor_id = actor_id
        self.actor_mode = require_mode(actor_mode)
        self.random = np.random.default_rng(session.seed)
        #: Episodes that are over, steps of all, and steps of the episode that goes on.
        self.current_episode = self.cumulative_steps = self.current_step = 0
        #: Of the parameters in use: the learner's count of its steps when it published them.
        self.iteration = 0
        self._has_fetched = False
        #: Whether the next step that is sent follows no other one.
        self._begins_anew = True
        self._tracker = session.pull_rule.tracker()
        self._metrics = IntervalMetrics(session.metrics)
        self._actions_since_update = self._episodes_since_update = 0

    @abstractmethod
    def act(self, obs: Any) -> Any:
        """Return an action for one state, or ``Acted``, which says how probable it was.

        Look at ``actor_mode``: in ``training`` an actor explores.
        """

    @abstractmethod
    def module_dict(self) -> Mapping[str, Module]:
        """Return what is learnt, by name: as the learner's ``module_dict`` has it."""

    def pre_episode(self) -> None:
        """Prepare for an episode; fetch the parameters, by the pull rule."""
        self.current_step, self._begins_anew = 0, True
        goes_by_episodes = self.session.pull_rule.mode == "episode"
        is_due = goes_by_episodes and self._tracker.track_increment()
        if is_due or self.actor_mode != TRAINING:
            self.fetch_parameter()

    def pre_action(self, obs: Any) -> None:
        """Prepare for an action; fetch the parameters, by the pull rule."""
        goes_by_steps = self.actor_mode == TRAINING and self.session.pull_rule.mode != "episode"
        if goes_by_steps and self._tracker.track_increment():
            self.fetch_parameter()

    def post_action(
        self, obs: Any, action: Any, obs_next: Any, reward: float, done: bool, info: dict[str, Any]
    ) -> None:
        """Take what an action led to.

        ``info["truncated"]`` says whether an episode that is ``done`` was cut off, and not over.
        ``info["executed_action"]`` is the action that was executed in the place of ``action``, in
        the same form, where there is one.
        """
        self.current_step += 1
        self.cumulative_steps += 1
        self._actions_since_update += 1
        self._episodes_since_update += done

    def post_episode(self) -> None:
        """Take note that an episode is over, after the ``post_action`` of its last step."""
        self.current_episode += 1

    def on_parameter_fetched(
        self, parameters: ParameterArrays, info: PublishedInfo
    ) -> ParameterArrays:
        """Return what is to be used of ``parameters``, by name, which have just come.

        Parameter noise is added here.
        """
        if self.actor_mode == TRAINING:
            add = self._metrics.add
            add("actor/actions per update", self._actions_since_update)
            add("actor/episodes per update", self._episodes_since_update)
        self._actions_since_update = self._episodes_since_update = 0
        return parameters

    def fetch_parameter(self) -> None:
        """Use the parameters that were published last; the same as before while there are none."""
        values = self.session.parameters.fetch_parameter_with_info()
        if values is not None and values.vector is not None and values.info is not None:
            self.iteration, self._has_fetched = values.info.iteration, True
            if self.actor_mode == TRAINING and values.age_s is not None:
                self._metrics.add("actor/publish delay", values.age_s)
            self.load(self.on_parameter_fetched(self.split(values.vector), values.info))
        self._metrics.store_if_due()

    def fetch_parameter_info(self) -> PublishedInfo | None:
        """Return how the newest parameters were published; None where there are none."""
        return self.session.parameters.fetch_info()

    def set_actor_mode(self, actor_mode: str) -> None:
        """Act in another mode from the next action on; ConfigurationError if there is none.

        Of an episode that goes on, what was recorded before ends in its newest state: steps of
        other modes may come between.
        """
        mode = require_mode(actor_mode)
        if self._sends and mode != self.actor_mode:
            self._sender.give_up()
        self.actor_mode, self._begins_anew = mode, True

    def prepare_env(self, environment: Environment) -> Environment:
        """Return the environment as it is used in this mode."""
        if self.actor_mode == TRAINING:
            return self.prepare_env_actor(environment)
        return self.prepare_env_eval(environment)

    def prepare_env_actor(self, environment: Environment) -> Environment:
        """Wrap an environment that is learnt from; its episodes are cut off at their limit."""
        return limited(environment, self.session.limit_episode_length)

    def prepare_env_eval(self, environment: Environment) -> Environment:
        """Wrap an environment in which the actor is judged; the limit is the same."""
        return limited(environment, self.session.limit_episode_length)

    def split(self, vector: FloatVector) -> ParameterArrays:
        """Return published parameters, float32 [size], by name."""
        return self._modules.split(vector)

    def load(self, parameters: ParameterArrays) -> None:
        """Act with ``parameters`` from now on."""
        self._modules.load(parameters)

    def main(
        self,
        environment: Environment,
        observer: RunObserver | None = None,
        episodes: int | None = None,
    ) -> None:
        """Play until the session is over, or for so many ``episodes``."""
        observer, asked = observer or RunObserver(), self.config.observation_space()
        prepared = ActorEnvironment(self.prepare_env(environment), asked, observer)
        self.fetch_parameter()
        observer.on_connected()
        while not self.session.is_over() and self.current_episode != episodes:
            self.run_episode(prepared, observer)

    def run_episode(self, environment: ActorEnvironment, observer: RunObserver) -> None:
        """Play one episode, unless the session is over before it is."""
        self.pre_episode()
        began, total = time.perf_counter(), 0.0
        obs, _ = environment.reset(self.session.seed if self.current_episode == 0 else None)
        while not self.session.is_over():
            action = self._chosen(obs)
            outcome = environment.step(action)
            total += outcome.reward
            self._take(obs, action, outcome)
            observer.on_step()
            obs = outcome.state
            if outcome.is_over:
                self.post_episode()
                seconds = time.perf_counter() - began
                numbers = environment.numbers.of(outcome.info)
                observer.on_episode(EpisodeSummary(total, self.current_step, seconds, numbers))
                return

    def fetched_iteration(self) -> int | None:
        """Return ``iteration``; None before any parameters were fetched."""
        return self.iteration if self._has_fetched else None

    def policy(self) -> EvaluatedPolicy | None:
        """Return what the episode is played with; None, by default, if its version is not known."""
        return None

    def close(self) -> None:
        """Hand on what was begun, and store the metrics that are left."""
        if self._sends:
            self._sender.give_up()
        self._metrics.store()

    @property
    def _sends(self) -> bool:
        return self.actor_mode == TRAINING

    @cached_property
    def _modules(self) -> ModuleDict:
        """What ``module_dict`` returns, once the actor has been made."""
        return ModuleDict(self.module_dict())

    @cached_property
    def _sender(self) -> ExperienceSender:
        return ExperienceSender(columns_of(self.config), self.session.experience)

    def _chosen(self, obs: Any) -> Any:
        """Return the action for a state, which begins a step."""
        self.pre_action(obs)
        choice = self.act(obs)
        acted = choice if isinstance(choice, Acted) else Acted(choice)
        if self._sends:
            starts, self._begins_anew = self._begins_anew, False
            self._sender.begin(obs, acted, starts=starts, version=self.iteration)
        return acted.action

    def _take(self, obs: Any, action: Any, outcome: Outcome) -> None:
        """Complete a step by what its action led to."""
        if self._sends:
            if outcome.executed is not None:
                self._sender.executed(outcome.executed)
            self._sender.end(outcome.reward, terminated=outcome.terminated)
            if outcome.truncated:
                self._sender.cut_off(outcome.state)
        info = {**outcome.info, "truncated": outcome.truncated}
        info.pop(EXECUTED_ACTION, None)  # of the environment's own form
        if outcome.executed is not None:
            info[EXECUTED_ACTION] = outcome.executed
        self.post_action(obs, action, outcome.state, outcome.reward, outcome.is_over, info)
