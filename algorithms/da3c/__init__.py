"""DA3C: Distributed Advantage Actor-Critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``          the YAML's ``algorithm:`` section, typed
``network``           layers and their shapes; no TensorFlow
``initialization``    initial parameters; no TensorFlow
``model``             the network as pure functions of parameters and a batch
``preprocessor``      checks states and stacks them into observations; no TensorFlow
``rollouts``          rollouts as arrays; no TensorFlow
``learner``           turns rollouts into updates, at once or in the background
``agent``             chooses actions and assembles rollouts, for one environment or many
``parameter_server``  owns the global parameters and the shared RMSProp; no TensorFlow
"""

from typing import Any

from relaax.bridge import Bridge, BridgeControl

from .config import Config
from .parameter_server import ParameterServer
from .preprocessor import Preprocessor
from .tensorflow_runtime import import_tensorflow

__all__ = [
    "Agent",
    "BatchAgent",
    "Bridge",
    "BridgeControl",
    "Config",
    "ParameterServer",
    "Preprocessor",
]


def __getattr__(name: str) -> Any:
    """Import the agents when they are asked for: the parameter server runs without TensorFlow."""
    if name in ("Agent", "BatchAgent"):
        import_tensorflow()
        from . import agent

        return getattr(agent, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
