"""An actor-critic that learns from fresh rollouts and from replay in one step: ACER in small."""

from relaax.assembly import Assembly

from .builder import Builder
from .config import Config as Config

ParameterServer, _, make_batch_agent, make_learner, replay_spec = Assembly(Builder)
