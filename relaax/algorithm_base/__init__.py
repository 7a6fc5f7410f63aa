"""What an algorithm package implements.

A package is a folder with an ``__init__.py`` that exports ``Config``, ``ParameterServer``,
``Agent``, ``Bridge`` and ``BridgeControl``; with ``Preprocessor`` and ``BatchAgent`` beside them it
can also be run with ``--inference batched``. ``docs/algorithms.md`` walks through one.
"""

from relaax.algorithm_base.agent_base import AgentBase
from relaax.algorithm_base.batch_agent_base import BatchAgentBase
from relaax.algorithm_base.bridge_base import (
    BridgeBase,
    BridgeControlBase,
    FloatVector,
    Phase,
    RunningParameterServer,
    Values,
    Version,
)
from relaax.algorithm_base.checkpoint import Checkpoint, NullSaver, Saver
from relaax.algorithm_base.config_base import ConfigBase
from relaax.algorithm_base.parameter_server_base import ParameterServerBase
from relaax.algorithm_base.preprocessor_base import PreprocessorBase
from relaax.errors import CheckpointMismatch, InvalidState
from relaax.metrics import Metrics, NullMetrics
from relaax.steps import Steps

__all__ = [
    "AgentBase",
    "BatchAgentBase",
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
    "PreprocessorBase",
    "RunningParameterServer",
    "Saver",
    "Steps",
    "Values",
    "Version",
]
