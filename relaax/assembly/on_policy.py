"""What builders of algorithms share that learn from rollouts of the newest policies."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from relaax.algorithm_base import FloatVector, Learner
from relaax.assembly.parts import ExperienceParts, MethodBuilder, ParameterParts, WorkerParts
from relaax.learning.networks import initial_parameters
from relaax.learning.on_policy import PolicyConfig
from relaax.learning.on_policy.learner import Method, OnPolicyLearner
from relaax.learning.placements.home import Home
from relaax.parameters.schedule import Remembered
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Rollouts

#: The one table.
TABLE = "rollouts"

ConfigT = TypeVar("ConfigT", bound=PolicyConfig)


class OnPolicyBuilder(MethodBuilder[ConfigT]):
    """Derive from it, and return the ``method``, or a ``learner`` that has none.

    Where the learner has a process of its own, it has the parameters, and publishes them; where
    workers learn, the parameter server has them, and gradients move them.
    """

    def method(self, tensors: Any) -> Method[Any]:
        """Return what is learnt of rollouts, with ``ParameterTensors`` of the network."""
        raise NotImplementedError("a builder has a method, or a learner of its own")

    def learning_rate(self, method: Method[Any]) -> float:
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
            tables={TABLE: table},
            capacity=settings.steps_stored,
            units=config.units(),
            is_on_policy=True,
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
        if config.has_learner():
            return parts
        annealing = settings.annealing()
        if not config.learns():  # then it matters to nobody that the rate has fallen to 0
            annealing = replace(annealing, begin_key=None)
        size = self.network().manifest.size
        return replace(
            parts,
            optimizer=filters.optimizer(settings.optimizer.make(size)),
            learning_rate=Remembered(annealing, lambda: settings.initial_learning_rate),
        )

    def learner(self, home: Home) -> Learner:
        """See Builder."""
        from relaax.learning.networks.parameters_tf import ParameterTensors

        settings, worker = self.config.settings, home.worker
        if worker is None:
            return self._in_process(home.seed)
        return OnPolicyLearner(
            self.method(ParameterTensors(self.network())),
            worker.policy,
            worker.parameters,
            worker.counter,
            worker.metrics,
            settings.optimizer.gradient_norm_clipping,
            settings.passes,
            worker.random,
        )

    def _in_process(self, seed: int | None) -> Learner:
        from relaax.learning.networks.parameters_tf import ParameterTensors
        from relaax.learning.placements.process import InProcess, OwnParameters, Rewards
        from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

        settings, filters = self.config.settings, self.config.filters()
        configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
        tensors = ParameterTensors(self.network(), settings.gpu)
        method, size = self.method(tensors), self.network().manifest.size
        own = OwnParameters(
            self._initial(seed),
            filters.optimizer(settings.optimizer.make(size)),
            Remembered(settings.annealing(), lambda: self.learning_rate(method)),
            filters,
            tensors.unpack,
        )
        learner = OnPolicyLearner(
            method,
            own.policy,
            own.source,
            own.counter,
            gradient_norm_clipping=settings.optimizer.gradient_norm_clipping,
            passes=settings.passes,
            random=np.random.default_rng(None if seed is None else [seed, 2]),
        )
        rewards = Rewards(settings.reward_scale, settings.clip_rewards)
        return InProcess(learner, own, rewards, TABLE, settings.rollouts_of_batch)

    def _initial(self, seed: int | None) -> FloatVector:
        """Return the network's parameters, and the statistics of filters behind them."""
        manifest, kind = self.network().manifest, self.config.settings.initialization
        filters = self.config.filters()
        return np.concatenate([initial_parameters(manifest, kind, seed), *filters.initial()])
