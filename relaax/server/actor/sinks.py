"""Where an actor's steps go: the one place that makes its sink of experience."""

from collections.abc import Callable
from typing import Any

from relaax.algorithm_base import ExperienceSink, Metrics, NullExperience
from relaax.compat.surreal.session import TRAINING
from relaax.configuration import ActorOptions
from relaax.replay.client.spread import StepReports, writer_to
from relaax.replay.specs import ReplaySpec
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, CountsRow

#: How long actors wait for a learner that starts, before they drop steps.
STARTS_WITHIN_S = 120.0


def experience_of(
    options: ActorOptions,
    spec: ReplaySpec,
    metrics: Metrics,
    kept: CountsRow,
    index: int,
    fetch: Callable[[], object] = lambda: None,
) -> ExperienceSink[Any]:
    """Return the sink of the steps of actor ``index``, or of one group of its agents.

    ``options`` are those of the group: an experiment's sample stream is written in its words. Steps
    of actors that do not train go nowhere. ``kept`` counts steps by their fate. ``fetch`` gets
    newer parameters while older ones are not admitted.
    """
    if options.mode != TRAINING:
        return NullExperience()
    return writer_to(
        [str(each) for each in options.replay_servers or (options.learner,)],
        spec,
        _KeptSteps(metrics, kept, fetch),
        first=index,
        drops=options.when_full == "drop",
        way=options.spread,
        first_timeout_s=STARTS_WITHIN_S,
    )


class _KeptSteps(StepReports):
    """Counts the steps of an actor in its row of the counts of all."""

    def __init__(
        self, metrics: Metrics, kept: CountsRow, fetch: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(metrics)
        self._kept = kept
        self._fetch = fetch

    def not_admitted(self) -> None:
        """See WriterObserver."""
        self._fetch()

    def delivered(self, actions: int) -> None:
        """See WriterObserver."""
        super().delivered(actions)
        self._kept.add(DELIVERED, actions)

    def dropped_actions(self, actions: int) -> None:
        """See WriterObserver."""
        self._kept.add(DROPPED, actions)
