"""DA3C for continuous actions: Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), section 5.2.

``settings``  the YAML's ``algorithm:`` section, typed
``config``    the same as the servers want it, with the distribution of actions and the filters

All else is DA3C's own, in ``relaax.learning.on_policy``; seed 003, "Distributed A3C Continuous".
"""

from relaax.learning.on_policy import Agent, ParameterServer, make_batch_agent, prepare_to_fork

from .config import Config

__all__ = ["Agent", "Config", "ParameterServer", "make_batch_agent", "prepare_to_fork"]
