"""A population of policies, one for each environment: evolution strategies."""

from relaax.assembly import Assembly

from .builder import Builder
from .config import Config as Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)
