"""PPO: proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network and the distribution of actions
``method_tf``   the method: targets and loss
``adaptation``  what follows the distance between policies: the clip, the penalty, the learning rate
``value_scale`` the scale of values, where they are learnt with mean 0 and deviation 1
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import PpoBuilder as Builder
from .config import Config

ParameterServer, Agent, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Agent", "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner",
    "prepare_to_fork", "replay_spec"
]  # fmt: skip
