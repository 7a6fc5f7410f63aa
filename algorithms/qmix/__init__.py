"""QMIX (Rashid et al. 2018) and VDN (Sunehag et al. 2017): Q-learning of a team.

https://arxiv.org/abs/1803.11485 and https://arxiv.org/abs/1706.05296. Each agent acts by the values
of its own actions; what is learnt is the value of all of them together, which a mixer makes of the
agents' values.

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the networks of agents and mixer
``method_tf``   the method: mixing, targets and loss
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import QmixBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
