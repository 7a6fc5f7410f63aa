"""Recurrent Q-learning from stored rollouts, each with rows before it: R2D2 in small."""

from relaax.assembly import Assembly

from .builder import Builder
from .config import Config as Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)
