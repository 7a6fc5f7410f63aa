"""A small algorithm to start from, as ``relaax-train --new-algorithm`` writes it.

Random search: the parameter server keeps the weights of the best episode so far. An agent moves
them a little, plays an episode with them, and reports what it scored.

``config``            which keys the YAML's ``algorithm:`` section has
``agent``             what acts in one environment
``parameter_server``  what all workers share, and what is saved of it
"""

from .agent import Agent
from .config import Config
from .parameter_server import ParameterServer

__all__ = ["Agent", "Config", "ParameterServer"]
