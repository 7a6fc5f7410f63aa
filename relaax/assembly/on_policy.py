"""The builder of algorithms that learn from rollouts of the newest policies."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from relaax.algorithm_base import FloatVector, Learner
from relaax.assembly.parts import ExperienceParts, Home, MethodBuilder, ParameterParts, WorkerParts
from relaax.learning.networks import POLICY, initial_parameters
from relaax.learning.on_policy import PolicyConfig, PolicySettings
from relaax.learning.on_policy.learner import Method, OnPolicyLearner
from relaax.learning.rollouts import ROLLOUTS
from relaax.parameters.optimizers import Adam, AdamSettings, Optimizer
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.parameters.schedule import Remembered
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Rollouts, View

ConfigT = TypeVar("ConfigT", bound=PolicyConfig)


class OnPolicyBuilder(MethodBuilder[ConfigT]):
    """Derive from it, and return the ``method``, or a ``learner`` that has none.

    Where one learner has a process of its own, it has the parameters, and publishes them; where
    workers learn, or several learners, the parameter server has them, and gradients move them.
    """

    def method(self, tensors: Any) -> Method[Any]:
        """Return the method, with ``ParameterTensors`` of the network."""
        raise NotImplementedError("a builder has a method, or a learner of its own")

    def learning_rate(self) -> float:
        """Return the learning rate, which is annealed."""
        return self._keys.initial_learning_rate

    def view(self) -> View:
        """Return the items that are drawn: rollouts."""
        settings = self.config.settings
        return Rollouts(
            settings.episode_len,
            settings.burn_in,
            overlap=0 if settings.max_staleness is None else -1,
            histories=self.config.histories,
        )

    def experience(self) -> ExperienceParts:
        """See MethodBuilder."""
        config, settings = self.config, self.config.settings
        count = settings.rollouts_of_batch
        table = TableSpec(
            self.view(),
            "fifo",
            Limiter(min_items=count, max_items=count * (settings.batches_ahead + 1)),
            holds_drawn=True,
            keeps_undrawn=True,
            staleness=settings.max_staleness,
        )
        return ExperienceParts(
            columns=config.columns(),
            stored=config.stored_columns,
            tables={ROLLOUTS: table},
            capacity=settings.steps_stored,
            units=config.units(),
            is_on_policy=True,
            is_published=self.learners is None,
            worker=None if config.has_learner() else self.worker(),
            pull_interval_s=settings.pull_interval_s,
        )

    def worker(self) -> WorkerParts:
        """Return how workers learn, where they do."""
        settings = self.config.settings
        return WorkerParts(settings.episode_len, least=settings.rollouts_of_batch)

    def parameters(self) -> ParameterParts:
        """See MethodBuilder; the learning rate of gradients is annealed linearly."""
        config, settings, filters = self.config, self.config.settings, self.config.filters()
        own = [self.initial()]
        if config.intrinsic is not None and isinstance(settings, PolicySettings):
            own.append(config.intrinsic.initial(settings.seed))
        parts = ParameterParts(
            initial=np.concatenate([*own, *filters.initial()]),
            fingerprint=config.fingerprint(),
            max_global_step=settings.max_global_step,
            filters=filters,
            learns=config.learns(),
        )
        if not isinstance(settings, PolicySettings):  # its learner sets values itself
            return parts
        annealing = settings.annealing()
        if not config.learns():  # then it matters to nobody that the rate has fallen to 0
            annealing = replace(annealing, begin_key=None)
        return replace(
            parts,
            optimizer=self._optimizer(*[part.size for part in own]),
            learning_rate=Remembered(annealing, self.learning_rate),
            averaging=self.averaging(),
            combine=self.combine(),
        )

    def initial(self) -> FloatVector:
        """Return the first parameters of the network."""
        settings = self.config.settings
        return initial_parameters(self.network().manifest, settings.initialization, settings.seed)

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.networks.parameters_tf import ParameterTensors

        settings = self._keys
        return OnPolicyLearner(
            self.method(ParameterTensors(self.network(), settings.gpu)),
            home.policy,
            settings.optimizer.gradient_norm_clipping,
            settings.passes,
            home.random,
            settings.rollouts_of_batch,
        )

    def placed(self, home: Home) -> Learner:
        """See MethodBuilder: intrinsic rewards are added to those that it learns from."""
        learner, config = self.learner(home), self.config
        if config.intrinsic is None:
            return learner
        from relaax.learning.intrinsic.learner_tf import IntrinsicLearner

        return IntrinsicLearner(
            learner,
            config.intrinsic,
            home.filters,
            config.settings.rewards_gamma,
            home.policy,
            self.network().manifest.size,
            config.intrinsic.initial(config.settings.seed),
            home.random,
        )

    def _optimizer(self, size: int, intrinsic: int = 0) -> Optimizer:
        """Return the optimiser of so many parameters, and of those of intrinsic rewards."""
        keys = self._keys
        whole = keys.optimizer.make(size)
        if keys.intrinsic is None:
            return whole
        rate = keys.intrinsic.learning_rate / keys.initial_learning_rate
        beside = Part(intrinsic, Adam(intrinsic, AdamSettings()), rate)
        return OptimizerOfParts({POLICY: Part(size, whole, 1.0), "intrinsic": beside})

    @property
    def _keys(self) -> PolicySettings:
        settings = self.config.settings
        if not isinstance(settings, PolicySettings):
            raise TypeError(f"{type(settings).__name__}: gradients need the keys of PolicySettings")
        return settings
