"""An actor-critic whose critic sees an observation that the actor does not."""

from relaax.assembly import Assembly

from .builder import Builder
from .config import Config as Config

ParameterServer, Agent, make_batch_agent, _, _ = Assembly(Builder)
