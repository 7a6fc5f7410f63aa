"""DA3C: Distributed Advantage Actor-Critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``          the YAML's ``algorithm:`` section, typed
``network``           layers, shapes and initial values; no TensorFlow
``model``             the network as pure functions of parameters and a batch
``agent``             chooses actions and assembles rollouts, one for each environment
``parameter_server``  owns the global parameters and the shared RMSProp; no TensorFlow
"""

from typing import Any

from relaax.common.bridge import Bridge, BridgeControl

from .config import Config
from .parameter_server import ParameterServer
from .tensorflow_runtime import import_tensorflow

__all__ = ["Agent", "Bridge", "BridgeControl", "Config", "ParameterServer"]


def __getattr__(name: str) -> Any:
    """Import the agent when it is asked for: the parameter server runs without TensorFlow."""
    if name == "Agent":
        import_tensorflow()
        from .agent import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
