"""Wires ACER: the one place that reads the configuration, and hands values to parts."""

from dataclasses import replace

from relaax.algorithm_base import FloatVector, Input, Learner
from relaax.assembly import ExperienceParts, OnPolicyBuilder
from relaax.assembly.parts import Home
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.critics import initial_critics
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec

from .config import ADVANTAGES, Config
from .settings import ContinuousAcer

#: The table of the same rollouts, of any age.
REPLAYED = "replayed"


class AcerBuilder(OnPolicyBuilder[Config]):
    """Actor-critic with experience replay, of discrete or continuous actions."""

    def experience(self) -> ExperienceParts:
        """See OnPolicyBuilder: the rollouts are drawn as they come, and again evenly."""
        parts, keys = super().experience(), self.config.settings
        if not keys.replayed_rollouts:
            return parts
        replayed = TableSpec(self.view(), "uniform", Limiter(keys.replayed_rollouts))
        return replace(parts, tables={**parts.tables, REPLAYED: replayed})

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.variables_tf import Variables

        from .continuous_tf import ContinuousActions
        from .method_tf import AVERAGE, Acer, Actions, DiscreteActions, Numbers

        config, keys = self.config, self.config.settings
        numbers = Numbers(
            discount=keys.rewards_gamma,
            largest_weight=keys.largest_weight,
            trust_region=keys.trust_region,
            entropy_beta=keys.entropy_beta,
            value_loss_weight=keys.value_loss_weight,
        )
        actions: Actions
        if isinstance(keys, ContinuousAcer) and config.advantages is not None:
            actions = ContinuousActions(
                self.network(),
                config.advantages,
                graph_of(config.distribution),
                numbers,
                samples=keys.dueling_samples,
                moves_sigma=keys.sigma != "fixed",
                seed=home.seed,
            )
        else:
            actions = DiscreteActions(self.network(), keys.mask_name, numbers)
        inputs = {ROLLOUTS: Input(keys.rollouts_per_update, rollouts_of, is_on_policy=True)}
        if keys.replayed_rollouts:
            inputs[REPLAYED] = Input(keys.replayed_rollouts, rollouts_of)
        initial = self._initial(home.seed)
        rates = dict.fromkeys(initial, keys.learning_rate)
        return Acer(
            Variables(initial, {AVERAGE: POLICY_VARIABLE}, rates),
            inputs,
            actions,
            replay_ratio=keys.replay_ratio,
            rollouts=keys.rollouts_per_update,
            average_decay=keys.average_decay,
            gradient_norm=keys.gradient_norm_clipping,
            random=home.random,
        )

    def _initial(self, seed: int | None) -> dict[str, FloatVector]:
        """Return all that is learnt as it is at first, by name."""
        initial, advantages = {POLICY_VARIABLE: self.initial()}, self.config.advantages
        if advantages is not None:
            how = self.config.settings.initialization
            initial[ADVANTAGES] = initial_critics(advantages, 1, seed, how)
        return initial
