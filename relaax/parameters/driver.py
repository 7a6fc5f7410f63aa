"""Takes the updates of a learner to the parameters, wherever both are."""

import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Gradient, Learner, Parameters, Step, StepCounter, Values
from relaax.errors import BridgeError
from relaax.processes.allocator import release_unused_memory
from relaax.telemetry.interval_metrics import IntervalMetrics

_log = logging.getLogger(__name__)

#: An update that changes nothing says that the training is over. Until a worker is told to end, or
#: the parameter server is back, it tries again no more often than this.
PAUSE_AT_THE_END_S = 1.0

#: By then everything is compiled, which took tens of MB that are free again.
UPDATES_BEFORE_RELEASE = 5

Versions = npt.NDArray[np.int64]


class Driver:
    """Pushes each update of ``learner`` to ``parameters``, and hands the newer values back.

    Where there are ``metrics``, each update is reported to them. If it ``loses`` updates, one that
    the parameter server does not take is dropped, with a warning, and so are those after it.
    """

    def __init__(
        self,
        learner: Learner,
        parameters: Parameters,
        counter: StepCounter,
        metrics: IntervalMetrics | None = None,
        loses: bool = False,
    ) -> None:
        self.learner = learner
        self._parameters = parameters
        self._counter = counter
        self._metrics = metrics
        self._loses = loses
        self._updates = 0
        self._stops = False
        #: Nothing is learnt before this moment.
        self._resumes_at = 0.0
        #: How often the parameter server was another one than that of the parameters before.
        self.restarts = 0

    def learn(
        self, batches: Mapping[str, Any], steps: int = 0, versions: Versions | None = None
    ) -> Step:
        """Make the updates of ``batches``; return their number, all priorities, and terms.

        A term is the mean over the updates that have it, or the last one of steps without update.
        The ``steps`` of environments are counted once. ``versions`` [K] are those of the parameters
        that acted, for metrics. When the training is over nothing is computed.
        """
        if time.monotonic() < self._resumes_at:
            return Step(updates=0)
        made = list[Step]()
        for step in self.learner.steps(batches):
            if step.update is None:
                self._note(step.terms)
            else:
                values, steps = self._push(step.update, steps), 0
                if values is None:
                    break
                self._report(step.terms, values, versions)
            made.append(step)
            if self._stops:
                break
        if steps:
            self._counter.add(steps)
        return _joined(made)

    def stop(self) -> None:
        """Make no other update."""
        self._stops = True

    def close(self) -> None:
        """Store the metrics that are left."""
        if self._metrics is not None:
            self._metrics.store()

    def _push(self, update: Gradient, steps: int) -> Values | None:
        """Push an update with the ``steps`` behind it, and hand on the values that it led to.

        None where it has changed nothing: it is lost, or the training is over.
        """
        try:
            values = self._parameters.push(replace(update, steps=steps))
        except BridgeError as error:
            if not self._loses:
                raise
            _log.warning("an update is lost: %s", error)
            return None
        if update.computed_with is not None:
            self.restarts += values.version.incarnation != update.computed_with.incarnation
        self.learner.take(values)
        if values.vector is None:
            self._resumes_at = time.monotonic() + PAUSE_AT_THE_END_S
            return None
        self._updates += 1
        if self._updates == UPDATES_BEFORE_RELEASE:
            release_unused_memory()
        return values

    def _report(
        self, terms: Mapping[str, float], values: Values, versions: Versions | None
    ) -> None:
        self._note(terms)
        if self._metrics is None:
            return
        if versions is not None:
            # Updates between the first action of a rollout and its gradient; a restarted
            # parameter server counts from its checkpoint again.
            lags = np.maximum(values.version.number - 1 - versions, 0)
            self._metrics.spread("learner/policy lag", lags.tolist())
        self._metrics.store_if_due(values.global_t)

    def _note(self, terms: Mapping[str, float]) -> None:
        if self._metrics is not None:
            for name, term in terms.items():
                self._metrics.add(f"learner/{name}", term)


def _joined(made: Sequence[Step]) -> Step:
    """Return the results of several steps as one."""
    pushed = [step for step in made if step.update is not None]
    others = [step for step in made if step.update is None]
    found = defaultdict[str, list[float]](list)
    for step in pushed:
        for name, term in step.terms.items():
            found[name].append(term)
    terms = {name: float(np.mean(numbers)) for name, numbers in found.items()}
    priorities = dict[str, Any]()
    for step in made:
        priorities |= step.priorities
    for step in others:
        terms |= step.terms
    return Step(len(pushed) + sum(step.updates for step in others), priorities, terms)
