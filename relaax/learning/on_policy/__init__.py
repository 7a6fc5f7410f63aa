"""What learns from rollouts: what DA3C, its form for continuous actions, and PPO share.

``policy_settings``  the keys of the YAML file that do not depend on the kind of actions
``discrete``         those that describe discrete actions
``continuous``       those that describe continuous actions
``config``           all of that as the servers want it, with the network and the distribution
``networks``         which layers a configuration asks for
``losses_tf``        what is minimised
``builder``          wires these and the parts of ``relaax.learning``

An algorithm derives its settings from ``ActorCriticSettings``, its configuration from
``ActorCriticConfig``, and exports what ``builder`` makes, ``Agent`` and ``ParameterServer`` among
it: the seed's names of ``make_agent`` and ``make_parameter_server``.
"""

from relaax.learning.on_policy.builder import (
    columns_of,
    make_agent,
    make_batch_agent,
    make_gradients,
    make_objective,
    make_parameter_server,
    prepare_to_fork,
)
from relaax.learning.on_policy.config import (
    ActorCriticConfig,
    ActorCriticSettings,
    PolicyConfig,
    VTraceSection,
)
from relaax.learning.on_policy.continuous import ContinuousSettings
from relaax.learning.on_policy.discrete import DiscreteSettings
from relaax.learning.on_policy.policy_settings import PolicySettings

Agent, ParameterServer = make_agent, make_parameter_server

__all__ = [
    "ActorCriticConfig", "ActorCriticSettings", "Agent", "ContinuousSettings", "DiscreteSettings",
    "ParameterServer", "PolicyConfig", "PolicySettings", "VTraceSection", "columns_of",
    "make_agent", "make_batch_agent", "make_gradients", "make_objective", "make_parameter_server",
    "prepare_to_fork"
]  # fmt: skip
