"""One update of the mean of several learners' gradients."""

import logging
import threading
import time

import numpy as np

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Gradient,
    Metrics,
    Statistics,
    Update,
    Values,
)
from relaax.algorithm_base.bridge_base import gradient_of, require_default
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore

_log = logging.getLogger(__name__)

#: How often a learner that waits for others looks whether the training is over.
_LOOK_S = 0.1


class Averager:
    """Waits for a gradient of each learner, and applies their mean; many threads call it at once.

    All gradients of a round are computed with the same parameters. A learner that does not come
    within ``timeout_s`` is missing: its round goes on without it, and the next ones do not wait for
    it. Its gradient, when it comes, is of parameters before; it is dropped, and counted, and the
    learner is waited for again. The statistics that come with gradients are all merged.
    """

    def __init__(self, store: ParameterStore, learners: int, timeout_s: float) -> None:
        self._store = store
        self._learners = learners
        #: May be changed at any time.
        self.timeout_s = timeout_s
        self._changed = threading.Condition()
        self._expected = learners
        self._round = 0
        self._sum: FloatVector | None = None
        self._statistics = list[Statistics]()
        self._count = 0
        #: Gradients that came too late.
        self.late = 0

    def contribute(self, gradient: Gradient, version: int) -> bool:
        """Add a gradient of the parameters ``version``, and wait until it is applied.

        Return whether it came in time; one that is late is dropped at once. After the end of the
        training nothing is applied, and nothing is waited for. ValueError for another size, and for
        a gradient that is not finite.
        """
        self._store.require_fitting(gradient.vector, gradient.statistics)
        with self._changed:
            if version != self._store.version:
                self.late += 1
                self._expected = min(self._expected + 1, self._learners)
                return False
            if self._sum is None:
                self._sum = gradient.vector.copy()
            else:
                self._sum += gradient.vector
            self._statistics += gradient.statistics
            self._count += 1
            if self._count >= self._expected:
                self._finish()
            else:
                self._wait_for_others()
            return True

    def _wait_for_others(self) -> None:
        mine, deadline = self._round, time.monotonic() + self.timeout_s
        while self._round == mine and not self._store.is_over:
            if time.monotonic() >= deadline:
                _log.warning(
                    "going on with %d of %d learners: no others came within %g s",
                    self._count,
                    self._expected,
                    self.timeout_s,
                )
                self._expected = self._count
                self._finish()
                return
            self._changed.wait(_LOOK_S)

    def _finish(self) -> None:
        """Apply the mean of the gradients that have come, and begin the next round."""
        if self._sum is not None:
            mean = self._sum / np.float32(self._count)
            self._store.apply(mean, steps=0, statistics=self._statistics)
        self._sum, self._count, self._statistics = None, 0, []
        self._round += 1
        self._changed.notify_all()


class AveragingService(ParameterService):
    """The parameter server's end of the link, where gradients are averaged over learners."""

    def __init__(self, store: ParameterStore, metrics: Metrics, averager: Averager) -> None:
        super().__init__(store, metrics)
        self._averager = averager

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Wait for the gradients of the other learners; return the parameters behind them."""
        if isinstance(update, Statistics):
            return super().push(update, policy)
        require_default(policy)
        gradient = gradient_of(update)
        known = gradient.computed_with
        version = self._store.version if known is None else known.number
        if not self._averager.contribute(gradient, version):
            self._metrics.scalar("parameter server/late gradients", self._averager.late)
        self._store.add(gradient.steps)
        return self.pull(known)
