"""SAC: soft actor-critic (Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with networks and the distribution of actions
``losses_tf``   what is minimised
``update_tf``   one update of all that is learnt
``builder``     wires these and the parts of ``relaax.learning.off_policy``
"""

from relaax.learning.off_policy import ParameterServer, prepare_to_fork, replay_spec

from .builder import make_batch_agent, make_learner
from .config import Config

__all__ = [
    "Config",
    "ParameterServer",
    "make_batch_agent",
    "make_learner",
    "prepare_to_fork",
    "replay_spec",
]
