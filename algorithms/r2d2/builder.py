"""Wires R2D2: the one place that reads the configuration, and hands values to parts."""

from relaax.algorithm_base import Input, Learner
from relaax.assembly import OffPolicyBuilder
from relaax.assembly.off_policy import TABLE
from relaax.assembly.parts import Home
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.steps import rollouts_of, weighed_rollouts_of
from relaax.replay.views import Rollouts, View

from .config import Config


class R2d2Builder(OffPolicyBuilder[Config]):
    """Q-learning with a recurrent network, from stored sequences."""

    def view(self) -> View:
        """See OffPolicyBuilder: sequences, and the steps before them."""
        keys = self.config.settings
        return Rollouts(keys.sequence_len, keys.burn_in, keys.sequence_overlap)

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.tensorflow_runtime_tf import configure_tensorflow
        from relaax.learning.variables_tf import Variables

        from .method_tf import TARGET, Priorities, RecurrentQLearning

        config, keys, priorities = self.config, self.config.settings, None
        configure_tensorflow(keys.gpu, has_the_machine=True, splits_operations=True)
        if (section := keys.prioritized) is not None:
            values = section.beta, section.beta_updates, section.largest, section.least_priority
            priorities = Priorities(TABLE, *values)
        prepare = rollouts_of if priorities is None else weighed_rollouts_of
        return RecurrentQLearning(
            Variables(config.initial(home.seed), {TARGET: POLICY_VARIABLE}, config.learning_rates),
            {TABLE: Input(keys.batch_size, prepare)},
            network=config.network,
            values=config.actions,
            action_mask=keys.mask_name,
            discount=keys.rewards_gamma,
            n_step=keys.n_step,
            rescales=keys.rescale_values,
            gradient_norm=keys.gradient_norm_clipping,
            target_rate=keys.target_rate,
            target_every=keys.target_every,
            priorities=priorities,
        )
