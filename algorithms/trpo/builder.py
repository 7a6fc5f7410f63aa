"""Wires TRPO: the one place that reads the configuration, and hands values to parts."""

from relaax.algorithm_base import Input, Learner
from relaax.assembly import OnPolicyBuilder
from relaax.assembly.parts import Home
from relaax.learning.networks import POLICY, initial_parameters
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
        initial = initial_parameters(network.manifest, keys.initialization, keys.seed)
        return Trpo(
            Variables({POLICY: initial}, {}, {POLICY: keys.value_learning_rate}),
            {ROLLOUTS: Input(keys.rollouts_per_batch, rollouts_of, is_on_policy=True)},
            network=network,
            distribution=graph_of(self.config.distribution),
            action_mask=keys.mask_name,
            discount=keys.rewards_gamma,
            trace_decay=keys.trace_decay,
            kl_target=keys.kl_target,
            conjugate_steps=keys.conjugate_steps,
            damping=keys.damping,
            shrinking=[keys.line_search_factor**step for step in range(keys.line_search_steps)],
            value_passes=keys.value_passes,
            value_minibatches=keys.value_minibatches,
            seed=home.seed,
        )
