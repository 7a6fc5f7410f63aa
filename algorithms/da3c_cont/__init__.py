"""DA3C for continuous actions: Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), section 5.2.

``settings``  the YAML's ``algorithm:`` section, typed
``config``    the same as the servers want it, with the distribution of actions and the filters

The method and its builder are those of DA3C; seed 003, "Distributed A3C Continuous".
"""

from relaax.assembly import Assembly, bundled, prepare_to_fork

from .config import Config

Builder = bundled("da3c").Builder

ParameterServer, Agent, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Agent", "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner",
    "prepare_to_fork", "replay_spec"
]  # fmt: skip
