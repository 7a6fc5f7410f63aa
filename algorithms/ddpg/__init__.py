"""DDPG (Lillicrap et al. 2016, https://arxiv.org/abs/1509.02971) and TD3 (Fujimoto et al. 2018).

With ``twin: true`` it is TD3, https://arxiv.org/abs/1802.09477: two critics, of which the smaller
value counts, noise on the actions behind them, and a policy that learns at every second update.

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with networks
``method_tf``   the method: targets, losses and the order of updates
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import DdpgBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
