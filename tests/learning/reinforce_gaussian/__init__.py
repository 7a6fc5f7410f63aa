"""REINFORCE (Williams 1992) with a diagonal Gaussian policy: a whole algorithm of few lines."""

from .builder import make_agent as Agent  # noqa: N812 - the seed's name
from .builder import make_batch_agent
from .builder import make_parameter_server as ParameterServer  # noqa: N812
from .config import Config

__all__ = ["Agent", "Config", "ParameterServer", "make_batch_agent"]
