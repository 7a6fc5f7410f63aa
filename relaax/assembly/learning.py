"""Places a learner in a worker."""

from collections.abc import Callable
from typing import Any, cast

from relaax.algorithm_base import ExperienceSink, Learner, MetricsSink
from relaax.assembly.parts import WorkerParts
from relaax.learning.placements import Gathering, InWorker, NoLearner, OnThread
from relaax.learning.placements.worker import RolloutLearner
from relaax.learning.policy import CurrentPolicy


def learning_sink(
    make_learner: Callable[[], Learner],
    worker: WorkerParts,
    policy: CurrentPolicy,
    metrics: MetricsSink,
    learns_in_background: bool,
) -> ExperienceSink[Any]:
    """Return a placement of the learner in a worker."""
    if not worker.learns:
        return NoLearner()
    learner, most, least = cast(RolloutLearner, make_learner()), worker.most, worker.least
    sink: ExperienceSink[Any]
    if worker.waits == "always" or not learns_in_background:
        sink = InWorker(learner, expected=max(most, least) if learns_in_background else 0)
    else:
        sink = OnThread(learner, policy, metrics, most, drops=worker.waits == "never")
    return Gathering(sink, least) if least > 1 else sink
