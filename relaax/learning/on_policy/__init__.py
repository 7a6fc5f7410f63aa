"""Learning from rollouts of the newest policies: DA3C, also of continuous actions, and PPO.

``policy_settings``  the keys of the YAML file that do not depend on the kind of actions
``discrete``         those that describe discrete actions
``continuous``       those that describe continuous actions
``config``           all of that as the servers want it, with the network and the distribution
``networks``         which layers a configuration asks for
``learner``          epochs and minibatches, whatever the method is
``sequences``        the steps of a batch with their advantages, and minibatches of them
``passes_tf``        values, advantages and gradients of these

An algorithm derives its settings from ``ActorCriticSettings``, its configuration from
``ActorCriticConfig``, and its builder from ``relaax.assembly.OnPolicyBuilder``.
"""

from relaax.learning.on_policy.config import (
    ActorCriticConfig,
    ActorCriticSettings,
    PolicyConfig,
    VTraceSection,
)
from relaax.learning.on_policy.continuous import ContinuousSettings
from relaax.learning.on_policy.discrete import DiscreteSettings
from relaax.learning.on_policy.networks import VALUE
from relaax.learning.on_policy.policy_settings import PolicySettings, RolloutSettings

__all__ = [
    "VALUE", "ActorCriticConfig", "ActorCriticSettings", "ContinuousSettings", "DiscreteSettings",
    "PolicyConfig", "PolicySettings", "RolloutSettings", "VTraceSection"
]  # fmt: skip
