"""DA3C: Distributed Advantage Actor-Critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``  the YAML's ``algorithm:`` section, typed
``config``    the same as the servers want it, with the distribution of actions

Its loss and what wires it are in ``relaax.learning.actor_critic``, which continuous actions share.
"""

from relaax.learning.actor_critic import (
    make_agent,
    make_batch_agent,
    make_parameter_server,
    prepare_to_fork,
)

from .config import Config

#: The seed's names.
Agent, ParameterServer = make_agent, make_parameter_server

__all__ = ["Agent", "Config", "ParameterServer", "make_batch_agent", "prepare_to_fork"]
