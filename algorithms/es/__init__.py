"""Evolution strategies (Salimans et al. 2017, https://arxiv.org/abs/1703.03864).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network
``method``      the method: mirrored candidates, ranks, the step of their mean
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import EsBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
