"""What operators see of a learner."""

from collections.abc import Iterable

from relaax.server.common.operators import Metric, counter, gauge
from relaax.server.common.operators.families import counters
from relaax.server.learner.loop import LearnerLoop


def figures(loop: LearnerLoop) -> Iterable[Metric]:
    """Yield what the loop has done."""
    done = loop.measured
    yield gauge("learner_iteration", "Steps of the learner, of earlier starts too", loop.iteration)
    yield counter("learner_updates", "Batches that were learnt from", done.updates)
    yield counter("learner_items", "Items of the replay in them", done.items)
    yield counters(
        "learner_phase_seconds",
        "Time of the learner's loop, by what it did",
        "phase",
        dict(done.seconds),
    )
