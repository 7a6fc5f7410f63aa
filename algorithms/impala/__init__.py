"""IMPALA: actors, and V-trace at a learner of its own (Espeholt et al. 2018, arXiv 1802.01561).

``settings``  the YAML's ``algorithm:`` section, typed: the defaults of the paper
``config``    the same as the servers want it, with the distribution of actions

The method and its builder are those of DA3C, which has the same loss with ``vtrace``.
"""

from relaax.assembly import Assembly, bundled, prepare_to_fork

from .config import Config

Builder = bundled("da3c").Builder

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
