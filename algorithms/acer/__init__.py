"""ACER: actor-critic with experience replay (Wang et al. 2017, https://arxiv.org/abs/1611.01224).

``settings``       the YAML's ``algorithm:`` section, typed
``config``         the same as the servers want it, with networks and the distribution of actions
``method_tf``      the method: the order of updates, the trust region, and discrete actions
``continuous_tf``  the same for continuous actions, with stochastic dueling networks
``builder``        wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import AcerBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
