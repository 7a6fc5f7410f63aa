"""The agent of many environments: chooses their actions and assembles their rollouts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import BatchAgentBase, BridgeBase, Transitions
from relaax.learning.arrays import zero_padded
from relaax.learning.preprocessor import Preprocessor
from relaax.steps import IntArray

from ..config import Config
from ..learner import BackgroundLearner, Learner, Policy
from ..model import Decision, Model, padded_size
from ..rollouts import NoRollouts, RolloutBatch, RolloutStore
from ..tensorflow_runtime import configure_tensorflow

Array = npt.NDArray[Any]

#: Larger batches are evaluated in pieces, unless ``warm_up`` has prepared for larger ones.
MOST_AT_ONCE = 128

#: A float32 draw is 0 once in 10**7, and its logarithm would choose any action, however improbable.
_LEAST_EXPONENTIAL = np.float32(1e-8)


class BatchAgent(BatchAgentBase):
    """Advantage actor-critic with n-step returns: Mnih et al. 2016, algorithm S3.

    Each rollout has ``episode_len`` rows. In the foreground its gradient goes to the parameter
    server, and the new parameters come back, before the next action is chosen.
    """

    def __init__(
        self, config: Config, parameter_server: BridgeBase, seed: int, learns_in_background: bool
    ) -> None:
        settings = config.settings
        configure_tensorflow(settings.gpu, has_the_machine=learns_in_background)
        self._settings = settings
        self._preprocessor = Preprocessor(settings.state_size, settings.history_len)
        self._model = Model(config.network, settings)
        learner = Learner(self._model, parameter_server, settings)
        self._background = (
            BackgroundLearner(learner, parameter_server.metrics(), settings.rollouts_per_update)
            if learns_in_background
            else None
        )
        self._learner = self._background or learner
        rollouts = RolloutStore if settings.learn else NoRollouts
        self._rollouts = rollouts(settings.episode_len, config.network.lstm_size)
        self._capacity = 0
        self._most_at_once = MOST_AT_ONCE
        self._recurrent_state = self._model.initial_recurrent_state(0)
        self._random = np.random.default_rng(
            None if settings.seed is None else [settings.seed, seed]
        )

    def warm_up(self, environments: int) -> None:
        """Trace and compile the network for every size of batch up to ``environments``.

        In the background its gradients too: tracing and compiling would hold up acting. For
        observations of the usual type: bytes for images, else float32.
        """
        dtype = np.uint8 if self._settings.is_image else np.float32
        self._most_at_once = max(self._most_at_once, padded_size(environments))
        policy = self._learner.policy
        if self._background is not None and self._settings.learn:
            self._model.prepare_gradients(
                policy.parameters, dtype, self._settings.rollouts_per_update
            )
        count = 1
        while count <= self._most_at_once:
            observations = np.zeros((count, *self._settings.observation_shape), dtype)
            self._decide(policy, observations, self._model.initial_recurrent_state(count))
            count *= 2

    def open(self, slots: IntArray) -> None:
        """Make room for environments that have come; MemoryError when there is none."""
        needed = int(slots.max(initial=-1)) + 1
        if needed <= self._capacity:
            return
        capacity = max(needed, 2 * self._capacity)
        self._rollouts.grow(capacity)
        self._preprocessor.grow(capacity)
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)
        self._capacity = capacity

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        self._rollouts.forget(slots)

    def check(self, states: Sequence[Any] | Array) -> Array:
        """Return states [B, ...] as uint8 or float32; InvalidState for what is no such array."""
        return self._preprocessor.check(states)

    def act(self, transitions: Transitions, states: Array, finals: Array) -> Array:
        """Complete the rows before, learn from the rollouts that are full, and choose actions."""
        rewards = transitions.rewards
        if self._settings.clip_rewards:
            rewards = np.clip(rewards, -1, 1)
        if transitions.only_steps:
            self._rollouts.reward(transitions.stepped, rewards, terminated=False)
        else:
            self._end_and_start(transitions, rewards, finals)
        slots, starts = transitions.acting, transitions.starts
        if len(slots) == 0:
            return np.zeros(0, np.int64)
        observations = self._preprocessor.observe(slots, states, starts)
        self._learn(self._rollouts.observe(slots, observations, starts))
        return self._choose(slots, observations)

    def close(self) -> None:
        """End the learner."""
        self._learner.close()

    def _end_and_start(self, transitions: Transitions, rewards: Array, finals: Array) -> None:
        """Note what ended, up to the first observations of episodes that start."""
        self._rollouts.cut_last(transitions.given_up)
        self._rollouts.reward(transitions.stepped, rewards, transitions.terminated)
        truncated = transitions.truncated
        if len(truncated):
            observations = self._preprocessor.observe(truncated, finals, None)
            self._learn(self._rollouts.cut_off(truncated, observations))
        self._recurrent_state[:, transitions.started] = 0

    def _choose(self, slots: IntArray, observations: Array) -> Array:
        """Choose actions for all with one policy, which may be replaced meanwhile."""
        policy, most = self._learner.policy, self._most_at_once
        if len(slots) <= most:
            return self._choose_at_once(policy, slots, observations)
        pieces = [slice(begin, begin + most) for begin in range(0, len(slots), most)]
        return np.concatenate(
            [self._choose_at_once(policy, slots[piece], observations[piece]) for piece in pieces]
        )

    def _choose_at_once(self, policy: Policy, slots: IntArray, observations: Array) -> Array:
        before = self._recurrent_state[:, slots]
        decision = self._decide(policy, observations, before)
        self._recurrent_state[:, slots] = decision.recurrent_state
        self._rollouts.act(
            slots, decision.actions, decision.log_probabilities, before, policy.version.number
        )
        return decision.actions

    def _decide(self, policy: Policy, observations: Array, recurrent_state: Array) -> Decision:
        size = (len(observations), self._settings.action_size)
        # The negative logarithm of an exponential variable has Gumbel's distribution.
        exponential = self._random.standard_exponential(size, dtype=np.float32)
        noise = -np.log(np.maximum(exponential, _LEAST_EXPONENTIAL))
        return self._model.act(policy.parameters, observations, recurrent_state, noise)

    def _learn(self, rollouts: RolloutBatch | None) -> None:
        if rollouts is not None:
            self._learner.learn(rollouts)
