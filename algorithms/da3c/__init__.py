"""DA3C: Distributed Advantage Actor-Critic (Mnih et al. 2016, https://arxiv.org/abs/1602.01783).

``settings``          the YAML's ``algorithm:`` section, typed
``network``           layers and their shapes; no TensorFlow
``initialization``    initial parameters; no TensorFlow
``model``             the network as pure functions of parameters and a batch
``rollouts``          rollouts as arrays; no TensorFlow
``learner``           turns rollouts into updates, at once or in the background
``agent``             chooses actions and assembles rollouts, for one environment or many
``parameter_server``  owns the global parameters and the shared RMSProp; no TensorFlow
"""

from typing import Any

from .config import Config
from .parameter_server import ParameterServer
from .tensorflow_runtime import import_tensorflow

__all__ = ["Agent", "Config", "ParameterServer", "make_batch_agent", "prepare_to_fork"]


def prepare_to_fork() -> None:
    """Import TensorFlow and the agents; nothing of TensorFlow is started."""
    __getattr__("make_batch_agent")


def __getattr__(name: str) -> Any:
    """Import the agents when they are asked for: the parameter server runs without TensorFlow."""
    if name in ("Agent", "make_batch_agent"):
        import_tensorflow()
        from . import agent

        return agent.Agent if name == "Agent" else agent.BatchAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
