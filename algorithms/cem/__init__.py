"""The cross-entropy method (de Boer et al. 2005, "A tutorial on the cross-entropy method").

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network
``method``      the method: elites, and the distribution that candidates are drawn from
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import CemBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
