"""DDPG (Lillicrap et al. 2016, https://arxiv.org/abs/1509.02971) and TD3 (Fujimoto et al. 2018).

With ``twin: true`` it is TD3, https://arxiv.org/abs/1802.09477: two critics, of which the smaller
value counts, noise on the actions behind them, and a policy that learns at every second update.

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with networks
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
