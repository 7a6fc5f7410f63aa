"""What a builder is told of the place of its learner."""

from dataclasses import dataclass

import numpy as np

from relaax.algorithm_base import StepCounter
from relaax.learning.filters import ParameterSource
from relaax.learning.policy import CurrentPolicy
from relaax.telemetry.interval_metrics import IntervalMetrics


@dataclass(frozen=True)
class WorkerHome:
    """A worker: gradients go to the parameter server."""

    #: The parameters that the worker acts with.
    policy: CurrentPolicy
    parameters: ParameterSource
    counter: StepCounter
    metrics: IntervalMetrics
    random: np.random.Generator


@dataclass(frozen=True)
class Home:
    """A worker, or a process of the learner's own."""

    seed: int | None
    worker: WorkerHome | None = None
