"""The interface of an algorithm package.

A package is a folder with an ``__init__.py`` that exports ``Config``, ``ParameterServer`` and
``Agent``: classes, or functions that are called like them. ``docs/your_algorithm.md`` describes
one.

It may export more: ``make_batch_agent`` serves many environments with one evaluation of a
network, ``BridgeControl`` brings a transport of its own, and ``prepare_to_fork`` imports what is
heavy, so that all workers share it.

``agent_base``             the algorithm's logic for one environment
``batch_agent_base``       the same for many at once, learning or evaluating
``learner``                learns from batches, in a worker or in a process of its own
``parameter_server_base``  the owner of the global parameters
``bridge_base``            the transport between them
``roles``                  what one part asks of another, one small role each
``inference``              the roles of agents whose policies another process has
``config_base``            the typed configuration
``checkpoint``             the content of a checkpoint, and the rule for accepting one
"""

from relaax.algorithm_base.agent_base import AgentBase, EnvironmentInfo, EvaluatedPolicy
from relaax.algorithm_base.batch_agent_base import BatchAgentBase, EvaluatorBase
from relaax.algorithm_base.bridge_base import (
    BridgeBase,
    BridgeControlBase,
    ParameterLink,
    Phase,
    RefusesCalls,
    RunningParameterServer,
)
from relaax.algorithm_base.checkpoint import Checkpoint, NullSaver, Saver, require_same_fingerprint
from relaax.algorithm_base.config_base import ConfigBase, Section
from relaax.algorithm_base.learner import Input, Learner, Step
from relaax.algorithm_base.parameter_server_base import ParameterServerBase, Slice
from relaax.algorithm_base.roles import (
    DEFAULT,
    Evaluations,
    ExperienceSink,
    FloatVector,
    Gradient,
    Lineage,
    MetricsSink,
    NewValues,
    NullExperience,
    Parameters,
    PublishedInfo,
    Statistics,
    StepCounter,
    Update,
    ValueFeed,
    Values,
    ValueSink,
    ValueSource,
    Version,
)
from relaax.errors import CheckpointMismatch, InvalidState
from relaax.processes.shard import Shard
from relaax.steps import Evaluation, Transitions
from relaax.telemetry.metrics import Metrics, NullMetrics

__all__ = [
    "DEFAULT",
    "AgentBase", "BatchAgentBase", "BridgeBase", "BridgeControlBase", "Checkpoint",
    "CheckpointMismatch", "ConfigBase", "EnvironmentInfo", "EvaluatedPolicy", "Evaluation",
    "Evaluations", "EvaluatorBase", "ExperienceSink", "FloatVector", "Gradient", "Input",
    "InvalidState", "Learner", "Lineage", "Metrics", "MetricsSink", "NewValues",
    "NullExperience", "NullMetrics", "NullSaver", "ParameterLink", "ParameterServerBase",
    "Parameters", "Phase", "PublishedInfo", "RefusesCalls", "RunningParameterServer", "Saver",
    "Section",
    "Shard", "Slice", "Statistics", "Step", "StepCounter", "Transitions", "Update", "ValueFeed",
    "ValueSink", "ValueSource", "Values", "Version", "require_same_fingerprint"
]  # fmt: skip
