"""A natural-gradient step with a line search: TRPO (https://arxiv.org/abs/1502.05477)."""

from relaax.assembly import Assembly

from .builder import Builder
from .config import Config as Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)
