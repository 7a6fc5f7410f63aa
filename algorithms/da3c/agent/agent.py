"""The agent: chooses actions for one environment and learns from its rewards."""

from typing import Any

import numpy as np

from relaax.algorithm_base import AgentBase, BridgeBase, Values

from ..config import Config
from ..gradient_norm import clip_by_global_norm
from ..model import Decision, Gradients, Model
from ..tensorflow_runtime import configure_tensorflow
from .history import Array, History
from .learning_metrics import LearningMetrics
from .rollout import Rollout, Step


class Agent(AgentBase):
    """Advantage actor-critic with n-step returns: Mnih et al. 2016, algorithm S3.

    Each rollout has ``episode_len`` steps; its gradient goes to the parameter server, and the new
    parameters come back in the same call, before the next action is chosen.
    """

    def __init__(self, config: Config, parameter_server: BridgeBase) -> None:
        super().__init__(config, parameter_server)
        settings = config.settings
        configure_tensorflow(gpu=settings.gpu)
        self._settings = settings
        self._model = Model(config.network, settings.entropy_beta, settings.value_loss_weight)
        self._history = History(settings.state_size, settings.history_len)
        self._rollout = Rollout(settings.episode_len, settings.rewards_gamma)
        self._random = np.random.default_rng(
            None if settings.seed is None else [settings.seed, config.worker_number]
        )
        self._metrics = LearningMetrics(parameter_server.metrics())
        self._pending: Step | None = None
        self._recurrent_state = self._model.initial_recurrent_state()
        self._score = 0.0
        self._use(parameter_server.get_values())

    def act(self, state: Any) -> int:
        """Start an episode; one that was going on was cut off in its last state."""
        if self._pending is not None:
            self._rollout.cut_off(self._pending.value)
            self._pending = None
        observation = self._history.start(state)
        self._score = 0.0
        self._recurrent_state = self._model.initial_recurrent_state()
        return self._choose(observation, starts_episode=True)

    def reward_and_act(self, reward: float, state: Any) -> int:
        """Complete the step before, learn when the rollout is full, and choose an action."""
        observation = self._history.push(state)
        self._complete_step(reward, terminated=False)
        if self._rollout.is_full:
            self._learn(bootstrap_value=self._evaluate(observation).values[0])
        return self._choose(observation, starts_episode=False)

    def reward_and_reset(self, reward: float) -> float:
        """Complete the last step of an episode and return the episode's uncut rewards' sum."""
        self._complete_step(reward, terminated=True)
        if self._rollout.is_full:
            self._learn(bootstrap_value=0.0)
        return self._score

    def _complete_step(self, reward: float, terminated: bool) -> None:
        if self._pending is None:
            raise RuntimeError("a reward came before an action was chosen")
        self._score += reward
        learned = float(np.clip(reward, -1, 1)) if self._settings.clip_rewards else reward
        self._rollout.add(self._pending, learned, terminated)
        self._pending = None

    def _choose(self, observation: Array, starts_episode: bool) -> int:
        decision = self._evaluate(observation)
        self._pending = Step(
            observation=observation,
            action=int(decision.actions[0]),
            value=float(decision.values[0]),
            starts_episode=starts_episode,
            recurrent_state=self._recurrent_state,
        )
        self._recurrent_state = decision.recurrent_state
        return self._pending.action

    def _evaluate(self, observation: Array) -> Decision:
        noise = self._random.gumbel(size=(1, self._settings.action_size)).astype(np.float32)
        return self._model.act(
            self._parameters, observation[np.newaxis], self._recurrent_state, noise
        )

    def _learn(self, bootstrap_value: float) -> None:
        steps = len(self._rollout)
        gradients = self._model.gradients(self._parameters, self._rollout.batch(bootstrap_value))
        self._rollout.clear()
        vector, norm = clip_by_global_norm(
            gradients.vector, self._settings.RMSProp.gradient_norm_clipping
        )
        values = self.parameter_server.synchronize(vector, steps, self._version)
        self._report(gradients, norm, steps, values)
        self._use(values)

    def _report(self, gradients: Gradients, norm: float, steps: int, values: Values) -> None:
        lag = max(0, values.version.number - self._version.number - 1)
        self._metrics.add(
            {
                "policy loss": gradients.policy_loss / steps,
                "value loss": gradients.value_loss / steps,
                "entropy": gradients.entropy / steps,
                "grad": norm,
                "policy lag": lag,
            },
            values.global_t,
        )

    def _use(self, values: Values) -> None:
        self._version = values.version
        if values.vector is not None:
            self._parameters = self._model.unpack(values.vector)
