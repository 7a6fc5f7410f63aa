"""PPO: proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network and the distribution of actions
``losses_tf``   what is minimised
``adaptation``  what follows the distance between policies: the clip, the penalty, the learning rate
``experience``  the steps of a batch with their advantages, and minibatches of them
``graphs_tf``   values and gradients of these
``learner_tf``  makes passes over each batch
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.learning.on_policy import prepare_to_fork

from .builder import ParameterServer, make_batch_agent, make_learner, replay_spec
from .config import Config

__all__ = [
    "Config",
    "ParameterServer",
    "make_batch_agent",
    "make_learner",
    "prepare_to_fork",
    "replay_spec",
]
