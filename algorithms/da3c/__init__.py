"""DA3C: Distributed Advantage Actor-Critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``  the YAML's ``algorithm:`` section, typed
``config``    the same as the servers want it, with the distribution of actions

Its loss and what wires it are in ``relaax.learning.on_policy``, which continuous actions share.
"""

from relaax.learning.on_policy import Agent, ParameterServer, make_batch_agent, prepare_to_fork

from .config import Config

__all__ = ["Agent", "Config", "ParameterServer", "make_batch_agent", "prepare_to_fork"]
