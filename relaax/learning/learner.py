"""Computes gradients, synchronises with the parameter server, publishes the new parameters."""

import logging
from dataclasses import dataclass

import numpy as np

from relaax.algorithm_base import BridgeBase, FloatVector, Values, Version
from relaax.allocator import release_unused_memory
from relaax.interval_metrics import IntervalMetrics

from ..gradient_norm import clip_by_global_norm
from ..model import Gradients, Model, Parameters
from ..rollouts import RolloutBatch
from ..settings import Settings

_log = logging.getLogger(__name__)

#: By then everything is compiled, which took tens of MB that are free again.
UPDATES_BEFORE_RELEASE = 5


@dataclass(frozen=True)
class Policy:
    """Parameters that actions are chosen with."""

    version: Version
    parameters: Parameters


class Learner:
    """Holds the parameters, and makes better ones out of rollouts.

    ``policy`` is replaced as a whole, so that another thread may read it at any time.
    """

    def __init__(self, model: Model, parameter_server: BridgeBase, settings: Settings) -> None:
        self._model = model
        self._parameter_server = parameter_server
        self._gradient_norm_clipping = settings.RMSProp.gradient_norm_clipping
        self._passes = settings.passes
        self._metrics = IntervalMetrics(parameter_server.metrics())
        self._updates = 0
        self._stops = False
        values = parameter_server.get_values()
        self.policy = Policy(values.version, model.unpack(_present(values)))

    def learn(self, rollouts: RolloutBatch, steps_dropped: int = 0) -> None:
        """Make one update of ``rollouts`` in each pass.

        Their steps are counted once, and with them those that nobody learns from.
        """
        steps = rollouts.steps + steps_dropped
        for _ in range(self._passes):
            if self._stops or not self._update(rollouts, steps):
                return
            steps = 0

    def stop(self) -> None:
        """Begin no other pass."""
        self._stops = True

    def close(self) -> None:
        """Store the metrics that are left."""
        self._metrics.store()

    def _update(self, rollouts: RolloutBatch, steps: int) -> bool:
        """Make one update of ``rollouts`` and fetch the new parameters, in one call.

        Return False, with nothing but the steps counted, when the gradient is not finite.
        """
        policy = self.policy
        gradients = self._model.gradients(policy.parameters, rollouts)
        vector, norm = clip_by_global_norm(gradients.vector, self._gradient_norm_clipping)
        if not np.isfinite(norm):
            _log.warning(
                "%d rollouts are not learnt from: their gradient is not finite; their rewards lie "
                "between %g and %g", rollouts.count, rollouts.rewards.min(), rollouts.rewards.max(),
            )  # fmt: skip
            self._parameter_server.increment_global_t(steps)
            return False
        values = self._parameter_server.synchronize(vector, steps, policy.version)
        self._report(gradients, norm, rollouts, values)
        self._updates += 1
        if self._updates == UPDATES_BEFORE_RELEASE:
            release_unused_memory()
        if values.vector is not None:
            self.policy = Policy(values.version, self._model.unpack(values.vector))
        return True

    def _report(
        self, gradients: Gradients, norm: float, rollouts: RolloutBatch, values: Values
    ) -> None:
        steps = max(rollouts.steps, 1)
        self._metrics.add("policy loss", gradients.policy_loss / steps)
        self._metrics.add("value loss", gradients.value_loss / steps)
        self._metrics.add("entropy", gradients.entropy / steps)
        self._metrics.add("grad", norm)
        self._metrics.add("rollouts per update", rollouts.count)
        # Updates between the first action of a rollout and its gradient; a restarted
        # parameter server counts from its checkpoint again.
        lags = np.maximum(values.version.number - 1 - rollouts.versions, 0)
        self._metrics.spread("policy lag", lags.tolist())
        self._metrics.store_if_due(values.global_t)


def _present(values: Values) -> FloatVector:
    if values.vector is None:
        raise RuntimeError("the parameter server sent no parameters to who has none")
    return values.vector
