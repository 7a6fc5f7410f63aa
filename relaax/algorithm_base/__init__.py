"""What an algorithm package implements.

A package is a folder with an ``__init__.py`` that exports ``Config``, ``ParameterServer``,
``Agent``, ``Bridge`` and ``BridgeControl``. ``docs/algorithms.md`` walks through one.
"""

from relaax.algorithm_base.agent_base import AgentBase
from relaax.algorithm_base.bridge_base import (
    BridgeBase,
    BridgeControlBase,
    FloatVector,
    Phase,
    RunningParameterServer,
    Values,
    Version,
)
from relaax.algorithm_base.config_base import ConfigBase
from relaax.algorithm_base.parameter_server_base import ParameterServerBase
from relaax.common.checkpoint import Checkpoint, NullSaver, Saver
from relaax.common.errors import CheckpointMismatch, InvalidState
from relaax.common.metrics import Metrics, NullMetrics

__all__ = [
    "AgentBase",
    "BridgeBase",
    "BridgeControlBase",
    "Checkpoint",
    "CheckpointMismatch",
    "ConfigBase",
    "FloatVector",
    "InvalidState",
    "Metrics",
    "NullMetrics",
    "NullSaver",
    "ParameterServerBase",
    "Phase",
    "RunningParameterServer",
    "Saver",
    "Values",
    "Version",
]
