"""Makes better parameters out of rollouts: epochs and minibatches, whatever the method is."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from relaax.algorithm_base import Gradient, Input, Learner, Step, Values
from relaax.learning.model import BatchGradient
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.learning.steps import rollouts_of
from relaax.parameters.optimizers.optimizer import clip_by_global_norm

_log = logging.getLogger(__name__)

#: A training that diverges warns no more often than this.
WARNING_INTERVAL_S = 10.0

BatchT = TypeVar("BatchT")


class Method(ABC, Generic[BatchT]):
    """The part of learning from rollouts that an algorithm has for itself."""

    @abstractmethod
    def begin(self, parameters: NetworkParameters, rollouts: RolloutBatch) -> BatchT:
        """Return the batch that passes are made over: advantages, for instance, are computed."""

    @abstractmethod
    def minibatches(self, batch: BatchT, random: np.random.Generator) -> Iterable[BatchT]:
        """Return the parts of a pass; each is an update of its own."""

    @abstractmethod
    def gradient(self, parameters: NetworkParameters, minibatch: BatchT) -> BatchGradient:
        """Return the gradient of a minibatch, and means over its steps."""

    def is_enough(self, terms: Mapping[str, float]) -> bool:
        """Return whether a minibatch with these ``terms`` is the last one, without its update."""
        return False

    def end_pass(self, parameters: NetworkParameters, batch: BatchT) -> bool:
        """Return whether a pass was the last one."""
        return False

    def finish(self, parameters: NetworkParameters, batch: BatchT) -> Mapping[str, float]:
        """Adapt to the results of all passes; return numbers to be shown."""
        return {}

    def prepare(self, parameters: NetworkParameters, most: int) -> None:
        """Do beforehand the work that updates of up to ``most`` rollouts would have to wait for."""

    def state(self) -> Mapping[str, Any]:
        """Return arrays for a checkpoint by name."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``, which may hold more."""


class WholeRollouts(Method[RolloutBatch]):
    """Derive from it, with the ``gradient`` of some of the rollouts, divided at random.

    They are divided into ``minibatches``, as far as there are so many, and into more where one
    would have more than ``most_at_once`` rollouts.
    """

    def __init__(self, minibatches: int = 1, most_at_once: int | None = None) -> None:
        self._minibatches = minibatches
        self._most_at_once = most_at_once

    def begin(self, parameters: NetworkParameters, rollouts: RolloutBatch) -> RolloutBatch:
        """Return the rollouts."""
        return rollouts

    def minibatches(self, batch: RolloutBatch, random: np.random.Generator) -> list[RolloutBatch]:
        """Return equal parts; see Method."""
        size = self.part_size(batch.count)
        if batch.count <= size:
            return [batch]
        return batch.chosen(random.permutation(batch.count)).pieces(size)

    def part_size(self, count: int) -> int:
        """Return how many of ``count`` rollouts a minibatch has at most."""
        size = -(-count // self._minibatches)
        return size if self._most_at_once is None else min(size, self._most_at_once)


class OnPolicyLearner(Learner, Generic[BatchT]):
    """Makes gradients of rollouts, in ``passes`` over each batch of them, at ``policy``.

    Gradients with a larger norm than ``gradient_norm_clipping`` are scaled down to it; None leaves
    them as they are. Minibatches whose gradient is not finite are left out. In a process of its own
    it draws ``batch_size`` rollouts at once.
    """

    def __init__(
        self,
        method: Method[BatchT],
        policy: CurrentPolicy,
        gradient_norm_clipping: float | None = None,
        passes: int = 1,
        random: np.random.Generator | None = None,
        batch_size: int = 1,
    ) -> None:
        self.inputs = {ROLLOUTS: Input(batch_size, rollouts_of, is_on_policy=True)}
        self.method = method
        self.policy = policy
        self._gradient_norm_clipping = gradient_norm_clipping
        self._passes = passes
        self._random = random or np.random.default_rng()
        self._warns_at = 0.0

    def steps(self, batches: Mapping[str, RolloutBatch]) -> Iterator[Step]:
        """Yield the gradient of each minibatch, and then numbers of all passes together."""
        rollouts = batches[ROLLOUTS]
        batch, passes = self.method.begin(self._parameters, rollouts), 0
        while passes < self._passes:
            passes += 1
            goes_on = yield from self._pass(rollouts, batch)
            if not goes_on or self.method.end_pass(self._parameters, batch):
                break
        last = self.method.finish(self._parameters, batch)
        yield Step(updates=0, terms={"passes": float(passes), **last})

    def take(self, values: Values) -> None:
        """Compute the next gradient at ``values``."""
        self.policy.publish(values)

    def prepare_updates(self, most: int) -> None:
        """Do beforehand the work that updates of up to ``most`` rollouts would have to wait for."""
        self.method.prepare(self._parameters, most)

    def state(self) -> Mapping[str, Any]:
        """Return the numbers that the method has adapted."""
        return self.method.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See Learner."""
        self.method.restore(state)

    @property
    def _parameters(self) -> NetworkParameters:
        return self.policy.current.parameters

    def _pass(self, rollouts: RolloutBatch, batch: BatchT) -> Generator[Step, None, bool]:
        """Yield the gradients of one pass; return whether another one may follow."""
        has_learnt = False
        for part in self.method.minibatches(batch, self._random):
            policy = self.policy.current
            gradient = self.method.gradient(policy.parameters, part)
            if self.method.is_enough(gradient.terms):
                return False
            shown = part if isinstance(part, RolloutBatch) else rollouts
            vector, norm = clip_by_global_norm(gradient.vector, self._gradient_norm_clipping)
            if not np.isfinite(norm):
                self._warn_of(shown)
                continue
            has_learnt = True
            terms = {**gradient.terms, "grad": norm, "rollouts per update": float(shown.count)}
            yield Step(terms=terms, update=Gradient(vector, policy.version))
        return has_learnt

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
