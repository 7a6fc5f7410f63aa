"""Computes gradients, applies them, and publishes the new parameters."""

import logging
import time

import numpy as np

from relaax.algorithm_base import ExperienceSink, GradientSink, StepCounter, Values
from relaax.learning.model import Gradient, GradientModel
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import RolloutBatch
from relaax.parameters.optimizers.optimizer import clip_by_global_norm
from relaax.processes.allocator import release_unused_memory
from relaax.telemetry.interval_metrics import IntervalMetrics

_log = logging.getLogger(__name__)

#: A training that diverges warns no more often than this.
WARNING_INTERVAL_S = 10.0

#: An update that changes nothing says that the training is over. Until a worker is told to end, or
#: the parameter server is back, it tries again no more often than this.
PAUSE_AT_THE_END_S = 1.0

#: By then everything is compiled, which took tens of MB that are free again.
UPDATES_BEFORE_RELEASE = 5


class GatheringSink:
    """An ``ExperienceSink`` that hands rollouts on when at least ``least`` of them are there.

    Rollouts of other observations, floats after bytes for example, are handed on apart. What is
    gathered when it is closed is dropped.
    """

    def __init__(self, sink: ExperienceSink[RolloutBatch], least: int) -> None:
        self._sink = sink
        self._least = least
        self._gathered: list[RolloutBatch] = []

    def warm_up(self) -> None:
        """Warm up what learns."""
        self._sink.warm_up()

    def put(self, rollouts: RolloutBatch) -> None:
        """Keep ``rollouts``, or hand all on."""
        if self._gathered and self._gathered[0].kind != rollouts.kind:
            self._hand_on()
        self._gathered.append(rollouts)
        if sum(batch.count for batch in self._gathered) >= self._least:
            self._hand_on()

    def close(self) -> None:
        """Close what learns."""
        self._sink.close()

    def _hand_on(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._sink.put(RolloutBatch.concatenated(gathered))


class Learner:
    """An ``ExperienceSink`` that makes better parameters out of rollouts, before ``put`` returns.

    In each of ``passes`` the rollouts are divided at random into ``minibatches``, as far as there
    are so many, and each of these is an update of its own. They are divided into more where one
    would have more than ``most_at_once`` rollouts. Gradients with a larger norm than
    ``gradient_norm_clipping`` are scaled down to it; None leaves them as they are. ``warm_up``
    compiles what updates of up to ``expected`` rollouts need; by default it does nothing, since
    it would hold up a worker whose rollouts may never need that.
    """

    def __init__(
        self,
        model: GradientModel,
        policy: CurrentPolicy,
        gradients: GradientSink,
        counter: StepCounter,
        metrics: IntervalMetrics,
        gradient_norm_clipping: float | None = None,
        passes: int = 1,
        minibatches: int = 1,
        random: np.random.Generator | None = None,
        most_at_once: int | None = None,
        expected: int = 0,
    ) -> None:
        self._model = model
        self._policy = policy
        self._gradients = gradients
        self._counter = counter
        self._metrics = metrics
        self._gradient_norm_clipping = gradient_norm_clipping
        self._passes = passes
        self._minibatches = minibatches
        self._most_at_once = most_at_once
        self._expected = expected
        self._random = random or np.random.default_rng()
        self._updates = 0
        self._warns_at = 0.0
        self._stops = False
        #: Nothing is learnt before this moment.
        self._resumes_at = 0.0

    def warm_up(self) -> None:
        """Compile the updates that are expected: when they come, clients wait for them."""
        if self._expected:
            self.prepare(self._expected)

    def put(self, rollouts: RolloutBatch) -> None:
        """Learn from ``rollouts``."""
        self.learn(rollouts, steps_dropped=0)

    def learn(self, rollouts: RolloutBatch, steps_dropped: int) -> None:
        """Make the updates of ``rollouts``.

        Their steps are counted once, and with them those of dropped rollouts. Minibatches whose
        gradient is not finite are left out. When the training is over no gradients are computed.
        """
        if time.monotonic() < self._resumes_at:
            return
        steps = rollouts.steps + steps_dropped
        for _ in range(self._passes):
            if not self._make_pass(rollouts, steps):
                return
            steps = 0

    def prepare(self, most: int) -> None:
        """Do beforehand what updates of up to ``most`` rollouts would have to wait for."""
        self._model.prepare(self._policy.current.parameters, self._part_size(most))

    def stop(self) -> None:
        """Begin no other pass."""
        self._stops = True

    def close(self) -> None:
        """Store the metrics that are left."""
        self._metrics.store()

    def _make_pass(self, rollouts: RolloutBatch, steps: int) -> bool:
        """Make the updates of one pass, and count ``steps``; return whether another may follow."""
        has_learnt = False
        for part in self._parts(rollouts):
            if self._stops:
                return False
            values = self._update(part, steps)
            steps = 0
            if values is not None and values.vector is None:
                self._resumes_at = time.monotonic() + PAUSE_AT_THE_END_S
                return False  # nothing has changed: the training is over
            has_learnt |= values is not None
        return has_learnt

    def _parts(self, rollouts: RolloutBatch) -> list[RolloutBatch]:
        """Return the minibatches of one pass."""
        size = self._part_size(rollouts.count)
        if rollouts.count <= size:
            return [rollouts]
        order = self._random.permutation(rollouts.count)
        return rollouts.chosen(order).pieces(size)

    def _part_size(self, count: int) -> int:
        size = -(-count // self._minibatches)
        return size if self._most_at_once is None else min(size, self._most_at_once)

    def _update(self, rollouts: RolloutBatch, steps: int) -> Values | None:
        """Make one update of ``rollouts``, publish the new parameters, and return them.

        Return None, with nothing but the steps counted, when the gradient is not finite.
        """
        policy = self._policy.current
        gradient = self._model.gradient(policy.parameters, rollouts)
        vector, norm = clip_by_global_norm(gradient.vector, self._gradient_norm_clipping)
        if not np.isfinite(norm):
            self._warn_of(rollouts)
            if steps:
                self._counter.add(steps)
            return None
        values = self._gradients.apply(vector, steps, policy.version)
        self._report(gradient, norm, rollouts, values)
        self._updates += 1
        if self._updates == UPDATES_BEFORE_RELEASE:
            release_unused_memory()
        self._policy.publish(values)
        return values

    def _warn_of(self, rollouts: RolloutBatch) -> None:
        """Warn of rollouts whose gradient is not finite, once in ``WARNING_INTERVAL_S``."""
        now = time.monotonic()
        if now < self._warns_at:
            return
        self._warns_at = now + WARNING_INTERVAL_S
        _log.warning(
            "%d rollouts are not learnt from: their gradient is not finite; their rewards lie "
            "between %g and %g. If these are as they should be, try a smaller learning rate",
            rollouts.count, rollouts.rewards.min(), rollouts.rewards.max(),
        )  # fmt: skip

    def _report(
        self, gradient: Gradient, norm: float, rollouts: RolloutBatch, values: Values
    ) -> None:
        steps = max(rollouts.steps, 1)
        for name, term in gradient.terms.items():
            self._metrics.add(f"learner/{name}", term / steps)
        self._metrics.add("learner/grad", norm)
        self._metrics.add("learner/rollouts per update", rollouts.count)
        # Updates between the first action of a rollout and its gradient; a restarted
        # parameter server counts from its checkpoint again.
        lags = np.maximum(values.version.number - 1 - rollouts.versions, 0)
        self._metrics.spread("learner/policy lag", lags.tolist())
        self._metrics.store_if_due(values.global_t)


class NoLearner:
    """An ``ExperienceSink`` where nothing is learnt: the parameters are served as they are."""

    def warm_up(self) -> None:
        """Do nothing."""

    def put(self, rollouts: RolloutBatch) -> None:
        """Drop the rollouts."""

    def close(self) -> None:
        """Do nothing."""
