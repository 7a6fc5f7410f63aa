"""The builder of algorithms that learn from stored transitions."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from relaax.algorithm_base import FloatVector, Learner
from relaax.assembly.parts import ExperienceParts, Home, MethodBuilder, ParameterParts, PolicyParts
from relaax.learning.exploration.epsilon_greedy import EpsilonGreedy
from relaax.learning.exploration.ladder import Ladder, SlotPlaces
from relaax.learning.off_policy.config import POLICY_VARIABLE, OffPolicyConfig
from relaax.learning.off_policy.learner import OffPolicyLearner, Update
from relaax.learning.off_policy.settings import ContinuousSettings, ExploringSettings, FloatArray
from relaax.learning.policy import ActingPolicy
from relaax.parameters.optimizers import Adam, AdamSettings
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Transitions, View

#: The one table.
TABLE = "all"

#: How far updates may be ahead of steps, or behind: in updates.
ERROR_UPDATES = 16

ConfigT = TypeVar("ConfigT", bound=OffPolicyConfig)


class OffPolicyBuilder(MethodBuilder[ConfigT]):
    """Derive from it, and return the ``update`` of a batch, or a ``learner`` that has none.

    Override ``policy`` to explore continuous actions, and ``view`` to draw other items than
    transitions.
    """

    def update(self, variables: Callable[..., Any]) -> Update:
        """Return the function that updates the variables by a batch.

        ``variables`` returns the ``Variables`` of all that is learnt: it is called with the names
        of those that follow, and of what they follow.
        """
        raise NotImplementedError("a builder has an update, or a learner of its own")

    def view(self) -> View:
        """Return the items that are drawn: transitions."""
        settings = self.config.settings
        return Transitions(settings.n_step, settings.rewards_gamma, stack=settings.history_len)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return the noise of an update of ``count`` transitions."""
        return np.zeros(count, np.float32)

    def policy(self, seed: int) -> PolicyParts:
        """See MethodBuilder; discrete actions are drawn from all of them now and then.

        Continuous ones are drawn evenly up to ``first_random_steps``.
        """
        parts, settings = super().policy(seed), self.config.settings
        if isinstance(settings, ContinuousSettings):
            return replace(parts, random_steps=settings.first_random_steps)
        if isinstance(settings, ExploringSettings):
            return replace(parts, make_noise=partial(epsilon_greedy, settings, parts.places))
        return parts

    def experience(self) -> ExperienceParts:
        """See MethodBuilder."""
        config, settings = self.config, self.config.settings
        limiter = Limiter(min_items=settings.learning_starts)
        if settings.updates_per_step is not None:
            per_insert = settings.updates_per_step * settings.batch_size
            buffer = max(ERROR_UPDATES * settings.batch_size, 2 * per_insert)
            limiter = replace(limiter, samples_per_insert=per_insert, error_buffer=buffer)
        view = self.view()
        table = TableSpec(view, "uniform", limiter)
        if settings.prioritized is not None:
            table = TableSpec(view, "prioritized", limiter, alpha=settings.prioritized.alpha)
        return ExperienceParts(
            columns=config.columns(),
            stored=config.stored_columns,
            tables={TABLE: table},
            capacity=settings.replay_size,
            units=config.units(),
            is_on_policy=False,
            is_published=settings.learners is None,
        )

    def parameters(self) -> ParameterParts:
        """See MethodBuilder: the policy is first of all that is learnt, statistics are last.

        With several learners the parameter server holds it all; one publishes its policy.
        """
        config, settings, filters = self.config, self.config.settings, self.config.filters()
        initial, learners = config.initial(settings.seed), settings.learners
        parts = ParameterParts(
            initial=np.concatenate([initial[POLICY_VARIABLE], *filters.initial()]),
            fingerprint=config.fingerprint(),
            max_global_step=settings.max_global_step,
            exploration=settings.exploration_by_step,
        )
        if learners is None:
            return parts
        return replace(
            parts,
            initial=np.concatenate([*initial.values(), *filters.initial()]),
            optimizer=self._optimizer(initial),
            filters=filters,
            averaging=self.averaging(),
            combine=self.combine(),
        )

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.tensorflow_runtime_tf import configure_tensorflow
        from relaax.learning.variables_tf import Variables

        config, settings, random = self.config, self.config.settings, home.random
        configure_tensorflow(settings.gpu, has_the_machine=True, splits_operations=True)
        initial, rates = config.initial(home.seed), config.learning_rates
        return OffPolicyLearner(
            self.update(lambda followers: Variables(initial, followers, rates)),
            TABLE,
            settings.batch_size,
            lambda count: self.noise(random, count),
            settings.prioritized,
            shares_gradients=settings.learners is not None,
            history_len=settings.history_len,
        )

    def _optimizer(self, initial: dict[str, FloatVector]) -> OptimizerOfParts:
        rates = self.config.learning_rates
        return OptimizerOfParts(
            {
                name: Part(vector.size, Adam(vector.size, AdamSettings()), rates[name])
                for name, vector in initial.items()
            }
        )


def epsilon_greedy(
    settings: ExploringSettings,
    places: SlotPlaces,
    policy: ActingPolicy,
    random: np.random.Generator,
) -> EpsilonGreedy:
    """Return the exploration of a worker whose environments have these ``places``."""
    keys, (choices, actions) = settings.exploration, settings.choices
    return EpsilonGreedy(
        actions,
        keys.epsilon,
        lambda: policy.global_t,
        random,
        Ladder(keys.rungs, places),
        keys.exponent,
        choices,
    )
