"""DQN (Mnih et al. 2015), with what came after it.

Double (van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461), dueling (Wang et al. 2016,
https://arxiv.org/abs/1511.06581), several steps, prioritized (Schaul et al. 2016,
https://arxiv.org/abs/1511.05952) and distributional (C51; Bellemare et al. 2017,
https://arxiv.org/abs/1707.06887).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network
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
