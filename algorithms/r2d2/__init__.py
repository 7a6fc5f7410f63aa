"""R2D2 (Kapturowski et al. 2019, https://openreview.net/forum?id=r1lyTjAqYX): DQN with a memory.

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network
``method_tf``   the method: rescaled targets over several steps, losses, priorities of sequences
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import R2d2Builder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
