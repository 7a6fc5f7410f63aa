"""What builders of algorithms share that learn from rollouts of the newest policies."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from relaax.algorithm_base import FloatVector, Learner, LearnerBase, Values, Version
from relaax.assembly.parts import ExperienceParts, MethodBuilder, ParameterParts, WorkerParts
from relaax.learning.networks import initial_parameters
from relaax.learning.on_policy import PolicyConfig
from relaax.learning.on_policy.learner import ROLLOUTS, Method, OnPolicyLearner
from relaax.learning.placements.home import Home
from relaax.learning.policy import CurrentPolicy
from relaax.parameters.schedule import Remembered
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Rollouts

ConfigT = TypeVar("ConfigT", bound=PolicyConfig)


class OnPolicyBuilder(MethodBuilder[ConfigT]):
    """Derive from it, and return the ``method``, or a ``learner`` that has none.

    Where one learner has a process of its own, it has the parameters, and publishes them; where
    workers learn, or several learners, the parameter server has them, and gradients move them.
    """

    def method(self, tensors: Any) -> Method[Any]:
        """Return what is learnt of rollouts, with ``ParameterTensors`` of the network."""
        raise NotImplementedError("a builder has a method, or a learner of its own")

    def learning_rate(self) -> float:
        """Return the learning rate, which is annealed."""
        return self.config.settings.initial_learning_rate

    def experience(self) -> ExperienceParts:
        """See Builder."""
        config, settings = self.config, self.config.settings
        count = settings.rollouts_of_batch
        table = TableSpec(
            Rollouts(settings.episode_len, settings.burn_in),
            "fifo",
            Limiter(min_items=count, max_items=count * (settings.max_policy_lag + 1)),
            holds_drawn=True,
            keeps_undrawn=True,
        )
        parts = ExperienceParts(
            columns=config.columns(),
            stored=config.columns(list(config.filters().states)),
            tables={ROLLOUTS: table},
            capacity=settings.steps_stored,
            units=config.units(),
            is_on_policy=True,
            is_published=settings.learners is None,
            pull_interval_s=settings.pull_interval_s,
        )
        if config.has_learner():
            return parts
        return replace(
            parts,
            worker=self.worker(),
            reward_scale=settings.reward_scale,
            clips_rewards=settings.clip_rewards,
        )

    def worker(self) -> WorkerParts:
        """Return how workers learn, where they do."""
        settings = self.config.settings
        return WorkerParts(settings.episode_len, least=settings.rollouts_of_batch)

    def parameters(self) -> ParameterParts:
        """See Builder; the learning rate is annealed linearly."""
        config, settings, filters = self.config, self.config.settings, self.config.filters()
        parts = ParameterParts(
            initial=self._initial(settings.seed),
            fingerprint=config.fingerprint(),
            max_global_step=settings.max_global_step,
            learns=config.learns(),
        )
        if config.has_learner() and settings.learners is None:
            return parts
        optimizer = settings.optimizer.make(self.network().manifest.size)
        return replace(
            parts,
            optimizer=filters.optimizer(optimizer),
            learning_rate=self._rate(),
            averaging=self.averaging(),
        )

    def learner(self, home: Home) -> Learner | LearnerBase:
        """See Builder."""
        from relaax.learning.networks.parameters_tf import ParameterTensors
        from relaax.learning.placements.process import InProcess, OwnParameters, Rewards
        from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

        settings, policy, filters = self.config.settings, home.policy, self.config.filters()
        if policy is None:
            configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
        tensors, initial = ParameterTensors(self.network(), settings.gpu), self._initial(home.seed)
        size = self.network().manifest.size
        learner = OnPolicyLearner(
            self.method(tensors),
            policy or CurrentPolicy(tensors.unpack, Values(Version(0), 0, initial[:size])),
            settings.optimizer.gradient_norm_clipping,
            settings.passes,
            home.random,
            settings.rollouts_of_batch,
        )
        if policy is not None:
            return learner
        own = None
        if settings.learners is None:
            own = OwnParameters(
                initial, filters.optimizer(settings.optimizer.make(size)), self._rate()
            )
        rewards = Rewards(settings.reward_scale, settings.clip_rewards)
        return InProcess(learner, filters, rewards, own)

    def _rate(self) -> Remembered:
        """Return the learning rate by the global step."""
        annealing = self.config.settings.annealing()
        if not self.config.learns():  # then it matters to nobody that the rate has fallen to 0
            annealing = replace(annealing, begin_key=None)
        return Remembered(annealing, self.learning_rate)

    def _initial(self, seed: int | None) -> FloatVector:
        """Return the network's parameters, and the statistics of filters behind them."""
        manifest, kind = self.network().manifest, self.config.settings.initialization
        filters = self.config.filters()
        return np.concatenate([initial_parameters(manifest, kind, seed), *filters.initial()])
