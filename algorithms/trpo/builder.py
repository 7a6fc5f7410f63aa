"""Wires TRPO: the one place that reads the configuration, and hands values to parts."""

from typing import Any

from relaax.algorithm_base import Input, Learner
from relaax.assembly import OnPolicyBuilder
from relaax.assembly.parts import Home
from relaax.learning.networks import POLICY
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of

from .config import Config


class TrpoBuilder(OnPolicyBuilder[Config]):
    """Trust region policy optimization, of discrete or continuous actions."""

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.variables_tf import Variables

        from .method_tf import Trpo

        keys, network = self.config.settings, self.network()
        variables = Variables({POLICY: self.initial()}, {}, {POLICY: keys.value_learning_rate})
        return Trpo(
            variables,
            {ROLLOUTS: Input(keys.rollouts_per_batch, rollouts_of, is_on_policy=True)},
            network=network,
            distribution=graph_of(self.config.distribution),
            action_mask=keys.mask_name,
            discount=keys.rewards_gamma,
            trace_decay=keys.trace_decay,
            policy_step=self._policy_step(),
            value_fit=self._value_fit(variables, home.seed),
        )

    def _policy_step(self) -> Any:
        """Return the ``PolicyStep`` of the optimizer."""
        from .method_tf import NaturalGradient
        from .penalty_tf import PenalizedStep

        keys = self.config.settings
        if keys.optimizer == "lbfgs":
            return PenalizedStep(
                keys.kl_target, keys.kl_penalty, keys.kl_cutoff, keys.lbfgs_iterations
            )
        return NaturalGradient(
            kl_target=keys.kl_target,
            conjugate_steps=keys.conjugate_steps,
            damping=keys.damping,
            shrinking=[keys.line_search_factor**step for step in range(keys.line_search_steps)],
        )

    def _value_fit(self, variables: Any, seed: int | None) -> Any:
        """Return the ``ValueFit`` of the optimizer."""
        from .values_tf import AdamFit, LbfgsFit

        keys, network = self.config.settings, self.network()
        if keys.optimizer == "lbfgs":
            mixing, iterations = keys.value_mixing, keys.lbfgs_iterations
            return LbfgsFit(network, variables, mixing=mixing, iterations=iterations)
        return AdamFit(
            network,
            variables,
            passes=keys.value_passes,
            minibatches=keys.value_minibatches,
            seed=seed,
        )
