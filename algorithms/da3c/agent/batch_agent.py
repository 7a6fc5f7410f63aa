"""The agent of many environments: chooses their actions and assembles their rollouts."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import BatchAgentBase, BridgeBase, Steps
from relaax.learning.arrays import zero_padded
from relaax.learning.slots import SlotPool
from relaax.steps import ENDED, START, TERMINATED, TRUNCATED, IntArray

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
        self, config: Config, parameter_server: BridgeBase, learns_in_background: bool
    ) -> None:
        super().__init__(config, parameter_server, learns_in_background)
        settings = config.settings
        configure_tensorflow(settings.gpu, has_the_machine=learns_in_background)
        self._settings = settings
        self._parameter_server = parameter_server
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
        self._slots = SlotPool()
        self._most_at_once = MOST_AT_ONCE
        self._is_running = np.zeros(0, np.bool_)
        self._recurrent_state = self._model.initial_recurrent_state(0)
        self._random = np.random.default_rng(
            None if settings.seed is None else [settings.seed, config.worker_number]
        )

    def warm_up(self, environments: int) -> None:
        """Trace and compile the network for every size of batch up to ``environments``.

        In the background its gradients too: tracing and compiling would hold up who acts. For
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

    def action_type(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return int64, and no dimension."""
        return np.dtype(np.int64), ()

    def open(self, environments: int) -> IntArray:
        """Return slots for environments that have come; MemoryError when there is no room."""
        slots = self._slots.take(environments)
        try:
            self._make_room()
        except MemoryError:
            self._slots.give_back(slots)
            self._slots.shrink(len(self._is_running))
            raise
        return slots

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        self._rollouts.forget(slots)
        self._is_running[slots] = False
        self._slots.give_back(slots)

    def act(self, steps: Steps) -> Array:
        """Complete the rows before, learn from the rollouts that are full, and choose actions."""
        slots, starts = steps.environments, None
        rewards = np.clip(steps.rewards, -1, 1) if self._settings.clip_rewards else steps.rewards
        if steps.flags.any():
            self._end_and_start(steps, rewards)
            acting = steps.acting
            slots, starts = slots[acting], (steps.flags[acting] & START) != 0
        else:
            self._rollouts.reward(slots, rewards, terminated=False)
        if len(slots) == 0:
            return np.zeros(0, np.int64)
        observations = np.asarray(steps.observations)
        self._learn(
            self._rollouts.observe(slots, observations, False if starts is None else starts)
        )
        return self._choose(slots, observations)

    def close(self) -> None:
        """End the learner."""
        self._learner.close()

    def _make_room(self) -> None:
        """Grow to the capacity of the slots."""
        capacity = self._slots.capacity
        if capacity > len(self._is_running):
            self._rollouts.grow(capacity)
            self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)
            self._is_running = zero_padded(self._is_running, capacity, axis=0)

    def _end_and_start(self, steps: Steps, rewards: Array) -> None:
        """Do what the flags say, up to the first observations of episodes that start."""
        slots, flags = steps.environments, steps.flags
        is_start, is_end = (flags & START) != 0, (flags & ENDED) != 0
        given_up = is_start & ~is_end & self._is_running[slots]
        self._rollouts.cut_last(slots[given_up])
        stepped = is_end | ~is_start
        terminated = (flags & TERMINATED) != 0
        self._rollouts.reward(slots[stepped], rewards[stepped], terminated[stepped])
        truncated = (flags & TRUNCATED) != 0
        if truncated.any():
            cut = (flags[steps.has_final] & TRUNCATED) != 0
            self._learn(self._rollouts.cut_off(slots[truncated], np.asarray(steps.finals)[cut]))
        self._is_running[slots] = ~is_end | is_start
        self._recurrent_state[:, slots[is_start]] = 0

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
