"""MAPPO: PPO for a team (Yu et al. 2021, https://arxiv.org/abs/2103.01955).

``settings``  the YAML's ``algorithm:`` section, typed: the defaults of the paper
``config``    the same as the servers want it, with a critic that sees all agents

The method and its builder are those of PPO.
"""

from relaax.assembly import Assembly, bundled, prepare_to_fork

from .config import Config

Builder = bundled("ppo").Builder

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner", "prepare_to_fork",
    "replay_spec"
]  # fmt: skip
