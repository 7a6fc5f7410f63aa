"""SAC: soft actor-critic (Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with networks and the distribution of actions
``method_tf``   the method: targets, losses and the order of updates
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import SacBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
