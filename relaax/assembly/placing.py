"""Places a learner: in a worker, or in a process of its own. Here alone it is decided where."""

from typing import Any

import numpy as np

from relaax.algorithm_base import (
    ExperienceSink,
    Learner,
    ParameterLink,
    Parameters,
    Values,
    Version,
)
from relaax.assembly.parts import Home, MethodBuilder, WorkerParts
from relaax.errors import ConfigurationError
from relaax.learning.filters import Filters
from relaax.learning.placements import Driver, Gathering, InWorker, OnThread
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.parameters.parameter_store import ParameterStore
from relaax.telemetry.interval_metrics import IntervalMetrics


def in_worker(
    builder: MethodBuilder[Any],
    worker: WorkerParts,
    policy: CurrentPolicy,
    source: Parameters,
    parameter_server: ParameterLink,
    random: np.random.Generator,
    in_background: bool,
    filters: Filters,
) -> ExperienceSink[Any]:
    """Return a learner that learns before the next action, or on a thread beside acting."""
    metrics, most, least = parameter_server.metrics(), worker.most, worker.least
    learner = builder.placed(Home(None, random.spawn(1)[0], policy, filters))
    if learner.values() or [*learner.inputs] != [ROLLOUTS]:
        raise ConfigurationError(
            f"{type(learner).__name__} does not learn in a worker, which has rollouts of its own "
            f"alone, and whose gradients move the parameters: its inputs are "
            f"{', '.join(learner.inputs)}. Let it have a process of its own: learner: process"
        )
    driver = Driver(learner, source, parameter_server, IntervalMetrics(metrics))
    sink: ExperienceSink[RolloutBatch]
    if worker.waits == "always" or not in_background:
        sink = InWorker(driver, max(most, least) if in_background else 0)
    else:
        sink = OnThread(driver, metrics, most, drops=worker.waits == "never")
    return Gathering(sink, least) if least > 1 else sink


def in_process(builder: MethodBuilder[Any], seed: int | None) -> Learner:
    """Return a learner for a process: with parameters of its own, or shared with other learners."""
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.placements.process import InProcess, Rewards
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    parts, experience, parameters = builder.policy(0), builder.experience(), builder.parameters()
    configure_tensorflow(parts.gpu, has_the_machine=True, splits_operations=True)
    tensors, size = ParameterTensors(parts.network, parts.gpu), parts.network.manifest.size
    own, _ = parts.filters.separated(parameters.initial)
    policy = CurrentPolicy(lambda vector: tensors.unpack(vector[:size]), Values(Version(0), 0, own))
    random = np.random.default_rng(None if seed is None else [seed, 2])
    learner = builder.placed(Home(seed, random, policy, parts.filters))
    if learner.values() and not experience.is_published:
        raise ConfigurationError(
            f"learners: {type(learner).__name__} sets the values of its parameters itself, which "
            "several learners cannot share: leave it out"
        )
    rewards, store = None, None
    if experience.is_filtered_late:
        rewards = Rewards(parts.reward_scale, parts.clips_rewards)
    if parameters.optimizer is not None and not learner.values() and experience.is_published:
        store = ParameterStore(
            parameters.initial, parameters.optimizer, parameters.learning_rate, parameters.filters
        )
    return InProcess(learner, parts.filters, rewards, store)
