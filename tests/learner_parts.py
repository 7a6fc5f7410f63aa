"""A learner whose gradient is easy to follow, with a parameter server, for tests."""

from dataclasses import replace

import numpy as np
from learning_parts import SMALL_COLUMNS, Recorder, small_policy, small_values

from relaax.algorithm_base import NullMetrics, Values, Version
from relaax.learning.model import BatchGradient
from relaax.learning.on_policy.learner import OnPolicyLearner, WholeRollouts
from relaax.learning.placements import Driver, InWorker
from relaax.learning.rollouts import RolloutBatch
from relaax.parameters.optimizers import RMSProp, RMSPropSettings
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.telemetry.interval_metrics import IntervalMetrics


class MeanReward(WholeRollouts):
    """A method: all parameters fall with the mean of the rewards."""

    def __init__(self, *division):
        super().__init__(*division)
        self.rollouts = []
        self.prepared = []

    def gradient(self, parameters, rollouts):
        self.rollouts.append(rollouts)
        size = sum(array.size for array in parameters.arrays.values())
        vector = np.full(size, rollouts.rewards.mean(), np.float32)
        return BatchGradient(
            vector, {"reward": float(rollouts.rewards.sum()) / max(rollouts.steps, 1)}
        )

    def prepare(self, parameters, most):
        self.prepared.append(self.part_size(most))


def parameter_store():
    """Parameters that are those of ``small_policy``."""
    vector = small_values().vector
    optimizer = RMSProp(vector.size, RMSPropSettings())
    return ParameterStore(vector, optimizer, learning_rate=lambda global_t: 0.01)


def parameter_service():
    """A parameter server with them."""
    return ParameterService(parameter_store(), NullMetrics())


class Restarted:
    """A parameter server of another incarnation."""

    def __init__(self, service):
        self._service = service

    def push(self, update, policy="default"):
        values = self._service.synchronize(update.vector, update.steps)
        return Values(Version(values.version.number, 77), values.global_t, values.vector)


class Learning:
    """A learner, its parameter server, and what it has learnt from."""

    def __init__(self, minibatches=1, most_at_once=None, expected=0, **values):
        self.store = parameter_store()
        self.bridge = Recorder(ParameterService(self.store, NullMetrics()))
        self.model = MeanReward(minibatches, most_at_once)
        self.policy = small_policy()
        self.learner = OnPolicyLearner(self.model, self.policy, **values)
        metrics = IntervalMetrics(self.bridge.stored, interval_s=0.0)
        self.driver = Driver(self.learner, self.bridge, self.bridge, metrics)
        self.sink = InWorker(self.driver, expected)

    @property
    def rollouts(self):
        return self.model.rollouts

    def vector(self):
        return self.bridge.get_values().vector

    def global_t(self):
        return self.bridge.increment_global_t(0)


def rollouts_of(count=1, reward=1.0, versions=0, dtype=np.float32):
    """Rollouts of three steps each."""
    columns = replace(SMALL_COLUMNS, observation_dtype=dtype)
    rollouts = RolloutBatch.zeros(count, 3, columns)
    rollouts.rewards[:] = reward
    rollouts.valid[:] = 1
    rollouts.versions[:] = versions
    return rollouts


def in_use(policy):
    return np.concatenate([array.ravel() for array in policy.current.parameters.arrays.values()])
