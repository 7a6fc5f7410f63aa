"""DA3C: distributed advantage actor-critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``   the YAML's ``algorithm:`` section, typed; seed 003, section "Distributed A3C"
``config``     the same as the servers want it, with the distribution of actions
``method_tf``  the method: targets and loss
``builder``    wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import Da3cBuilder as Builder
from .config import Config

ParameterServer, Agent, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Agent", "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner",
    "prepare_to_fork", "replay_spec"
]  # fmt: skip
