"""Random search of a linear policy: a whole algorithm, written against the documented names alone.

The parameter server keeps the weights with the best score so far. An agent perturbs them, plays
one episode, and sends its score and its weights as "the gradients".
"""

from relaax.bridge import Bridge, BridgeControl

from .agent import Agent
from .config import Config
from .parameter_server import ParameterServer

__all__ = ["Agent", "Bridge", "BridgeControl", "Config", "ParameterServer"]
