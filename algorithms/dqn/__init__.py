"""DQN (Mnih et al. 2015), with its later extensions.

Double (van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461), dueling (Wang et al. 2016,
https://arxiv.org/abs/1511.06581), several steps, prioritized (Schaul et al. 2016,
https://arxiv.org/abs/1511.05952) and distributional (C51; Bellemare et al. 2017,
https://arxiv.org/abs/1707.06887).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network
``method_tf``   the method: targets, losses and the order of updates
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import DqnBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
