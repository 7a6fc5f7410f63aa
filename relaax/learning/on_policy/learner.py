"""Makes better parameters out of rollouts: epochs and minibatches, whatever the method is."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from relaax.algorithm_base import GradientSink, Learner, Step, StepCounter, Values, Version
from relaax.learning.model import Gradient, GradientModel
from relaax.learning.networks.manifest import Parameters
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

BatchT = TypeVar("BatchT")


class Method(ABC, Generic[BatchT]):
    """The part of learning from rollouts that an algorithm has for itself."""

    @abstractmethod
    def begin(self, parameters: Parameters, rollouts: RolloutBatch) -> BatchT:
        """Return the batch that passes are made over: advantages, for instance, are computed."""

    @abstractmethod
    def minibatches(self, batch: BatchT, random: np.random.Generator) -> Iterable[BatchT]:
        """Return the parts of a pass; each is an update of its own."""

    @abstractmethod
    def gradient(self, parameters: Parameters, minibatch: BatchT) -> Gradient:
        """Return the gradient of a minibatch, and means over its steps."""

    def is_enough(self, terms: Mapping[str, float]) -> bool:
        """Return whether a minibatch with these ``terms`` is the last one, without its update."""
        return False

    def end_pass(self, parameters: Parameters, batch: BatchT) -> bool:
        """Return whether a pass was the last one."""
        return False

    def finish(self, parameters: Parameters, batch: BatchT) -> Mapping[str, float]:
        """Adapt to what all passes have led to; return numbers to be shown."""
        return {}

    def prepare(self, parameters: Parameters, most: int) -> None:
        """Do beforehand the work that updates of up to ``most`` rollouts would have to wait for."""

    def state(self) -> Mapping[str, Any]:
        """Return arrays for a checkpoint by name."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``, which may hold more."""


class WholeRollouts(Method[RolloutBatch]):
    """Computes ``gradients`` of some of the rollouts, divided at random.

    They are divided into ``minibatches``, as far as there are so many, and into more where one
    would have more than ``most_at_once`` rollouts.
    """

    def __init__(
        self, gradients: GradientModel, minibatches: int = 1, most_at_once: int | None = None
    ) -> None:
        self._gradients = gradients
        self._minibatches = minibatches
        self._most_at_once = most_at_once

    def begin(self, parameters: Parameters, rollouts: RolloutBatch) -> RolloutBatch:
        """Return the rollouts."""
        return rollouts

    def minibatches(self, batch: RolloutBatch, random: np.random.Generator) -> list[RolloutBatch]:
        """Return equal parts; see Method."""
        size = self._part_size(batch.count)
        if batch.count <= size:
            return [batch]
        return batch.chosen(random.permutation(batch.count)).pieces(size)

    def gradient(self, parameters: Parameters, minibatch: RolloutBatch) -> Gradient:
        """See Method."""
        gradient, steps = self._gradients.gradient(parameters, minibatch), max(minibatch.steps, 1)
        terms = {name: term / steps for name, term in gradient.terms.items()}
        return Gradient(gradient.vector, terms)

    def prepare(self, parameters: Parameters, most: int) -> None:
        """See Method."""
        self._gradients.prepare(parameters, self._part_size(most))

    def _part_size(self, count: int) -> int:
        size = -(-count // self._minibatches)
        return size if self._most_at_once is None else min(size, self._most_at_once)


class OnPolicyLearner(Learner, Generic[BatchT]):
    """Pushes gradients of rollouts, in ``passes`` over each batch of them.

    The values that come back are published to ``policy``, and the next gradient is that at these.
    Gradients with a larger norm than ``gradient_norm_clipping`` are scaled down to it; None leaves
    them as they are. Where there are ``metrics``, each update is reported to them.
    """

    def __init__(
        self,
        method: Method[BatchT],
        policy: CurrentPolicy,
        gradients: GradientSink,
        counter: StepCounter,
        metrics: IntervalMetrics | None = None,
        gradient_norm_clipping: float | None = None,
        passes: int = 1,
        random: np.random.Generator | None = None,
    ) -> None:
        self.method = method
        self.policy = policy
        self._gradients = gradients
        self._counter = counter
        self._metrics = metrics
        self._gradient_norm_clipping = gradient_norm_clipping
        self._passes = passes
        self._random = random or np.random.default_rng()
        self._updates = 0
        self._warns_at = 0.0
        self._stops = False
        #: Nothing is learnt before this moment.
        self._resumes_at = 0.0

    def step(self, batches: Mapping[str, RolloutBatch]) -> Step:
        """Learn from rollouts, whatever their name is."""
        (rollouts,) = batches.values()
        return self.learn(rollouts)

    def learn(self, rollouts: RolloutBatch, steps_dropped: int = 0) -> Step:
        """Make the updates of ``rollouts``; return the mean terms of the last pass.

        Their steps are counted once, and with them those of dropped rollouts. Minibatches whose
        gradient is not finite are left out. When the training is over no gradients are computed.
        """
        if time.monotonic() < self._resumes_at:
            return Step(updates=0)
        before = self._updates
        batch = self.method.begin(self._parameters, rollouts)
        steps, passes, terms = rollouts.steps + steps_dropped, 0, list[Mapping[str, float]]()
        for _ in range(self._passes):
            passes, terms = passes + 1, []
            goes_on = self._make_pass(rollouts, batch, steps, terms)
            steps = 0
            if not goes_on or self.method.end_pass(self._parameters, batch):
                break
        last = self.method.finish(self._parameters, batch)
        self._note(last)
        shown = {"passes": float(passes), **_means(terms), **last}
        return Step(self._updates - before, terms=shown)

    def prepare_updates(self, most: int) -> None:
        """Do beforehand the work that updates of up to ``most`` rollouts would have to wait for."""
        self.method.prepare(self._parameters, most)

    def stop(self) -> None:
        """Begin no other minibatch."""
        self._stops = True

    def close(self) -> None:
        """Store the metrics that are left."""
        if self._metrics is not None:
            self._metrics.store()

    @property
    def _parameters(self) -> Parameters:
        return self.policy.current.parameters

    def _make_pass(
        self, rollouts: RolloutBatch, batch: BatchT, steps: int, terms: list[Mapping[str, float]]
    ) -> bool:
        """Make the updates of one pass, count ``steps``, and add each minibatch's ``terms``.

        Return whether another pass may follow.
        """
        has_learnt = False
        for part in self.method.minibatches(batch, self._random):
            if self._stops:
                return False
            policy = self.policy.current
            gradient = self.method.gradient(policy.parameters, part)
            terms.append(gradient.terms)
            if self.method.is_enough(gradient.terms):
                return False
            shown = part if isinstance(part, RolloutBatch) else rollouts
            values = self._push(gradient, policy.version, shown, steps)
            steps = 0
            if values is not None and values.vector is None:
                self._resumes_at = time.monotonic() + PAUSE_AT_THE_END_S
                return False  # nothing has changed: the training is over
            has_learnt |= values is not None
        return has_learnt

    def _push(
        self, gradient: Gradient, version: Version, rollouts: RolloutBatch, steps: int
    ) -> Values | None:
        """Push a gradient computed with ``version``, publish the new values, and return them.

        Return None, with nothing but the steps counted, when the gradient is not finite.
        """
        vector, norm = clip_by_global_norm(gradient.vector, self._gradient_norm_clipping)
        if not np.isfinite(norm):
            self._warn_of(rollouts)
            if steps:
                self._counter.add(steps)
            return None
        values = self._gradients.apply(vector, steps, version)
        self._report(gradient, norm, rollouts, values)
        self._updates += 1
        if self._updates == UPDATES_BEFORE_RELEASE:
            release_unused_memory()
        self.policy.publish(values)
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
        if self._metrics is None:
            return
        self._note(gradient.terms)
        self._metrics.add("learner/grad", norm)
        self._metrics.add("learner/rollouts per update", rollouts.count)
        # Updates between the first action of a rollout and its gradient; a restarted
        # parameter server counts from its checkpoint again.
        lags = np.maximum(values.version.number - 1 - rollouts.versions, 0)
        self._metrics.spread("learner/policy lag", lags.tolist())
        self._metrics.store_if_due(values.global_t)

    def _note(self, terms: Mapping[str, float]) -> None:
        if self._metrics is not None:
            for name, term in terms.items():
                self._metrics.add(f"learner/{name}", term)


def _means(terms: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = terms[0] if terms else ()
    return {name: float(np.mean([each[name] for each in terms])) for name in names}
