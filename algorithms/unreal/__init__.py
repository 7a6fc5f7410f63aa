"""UNREAL: an actor-critic with auxiliary tasks (Jaderberg et al. 2017, arXiv 1611.05397).

``settings``   the YAML's ``algorithm:`` section, typed
``config``     the same as the servers want it, with the network and its auxiliary heads
``method_tf``  the method: pixel control, reward prediction, value replay, and the sum of losses
``builder``    wires these, DA3C's loss and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import UnrealBuilder as Builder
from .config import Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
