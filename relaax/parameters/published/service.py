"""What answers workers and learners, where a learner publishes the parameters."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    FloatVector,
    Metrics,
    NewValues,
    ParameterLink,
    ParameterServerBase,
    Saver,
    Update,
    Values,
    Version,
)
from relaax.algorithm_base.checkpoint import Fingerprint
from relaax.parameters.parameter_server import ParameterServer
from relaax.parameters.published.parameters import PublishedParameters
from relaax.parameters.schedules import Linear
from relaax.telemetry.metrics import EVALUATION_REWARD_AFTER, EVALUATION_REWARD_OF

#: So many of the latest scores are kept; learners ask several times a second.
MOST_SCORES = 10_000


def serve_published(
    initial: FloatVector,
    fingerprint: Fingerprint,
    max_global_step: float,
    saver: Saver,
    metrics: Metrics,
    exploration: Mapping[str, Linear] | None = None,
) -> ParameterServerBase:
    """Return what serves ``initial`` [size], and then what is published.

    ``fingerprint`` says what a checkpoint must agree on, and ``exploration`` how actors explore.
    """
    parameters = PublishedParameters(initial)
    return _PublishedParameterServer(
        store=parameters,
        service=PublishedService(parameters, metrics),
        saver=saver,
        fingerprint=fingerprint,
        max_global_step=max_global_step,
        exploration=exploration,
    )


class _PublishedParameterServer(ParameterServer[PublishedParameters]):
    """Saves what is published between two checkpoints, too: a restart serves it."""

    #: How much had been published, at least, when something was saved last.
    _saved = 0

    def save_checkpoint(self) -> None:
        """Save what is there, the newest publication with it."""
        published = self._store.publications  # before the snapshot, which may have more
        super().save_checkpoint()
        self._saved = published

    def save_published(self) -> None:
        """Save the newest publication until the next one, or a checkpoint, is saved."""
        published = self._store.publications
        if published != self._saved:
            self.saver.save_until_next(self._checkpoint())
            self._saved = published


class EvaluationLog(Metrics):
    """Passes scalars on to ``metrics``, and keeps scores of versions for the learner.

    A score is kept with the learner's step at which the version was published. Many threads may
    call it at once.
    """

    def __init__(self, metrics: Metrics, parameters: PublishedParameters) -> None:
        self._metrics = metrics
        self._parameters = parameters
        self._lock = threading.Lock()
        self._scores: deque[tuple[int, float]] = deque(maxlen=MOST_SCORES)
        self._count = 0

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep the score if it is one of a version that is known, and pass it on."""
        iteration = None if x is None else self._iteration(name, int(x))
        if iteration is not None:
            with self._lock:
                self._scores.append((iteration, float(y)))
                self._count += 1
        self._metrics.scalar(name, y, x)

    def _iteration(self, name: str, x: int) -> int | None:
        """Return the learner's step that a scalar is a score of; None if it is none."""
        if name == EVALUATION_REWARD_AFTER:  # none of a learner that has gone back since
            return x if x <= self._parameters.iteration else None
        return self._parameters.iteration_of(x) if name == EVALUATION_REWARD_OF else None

    def after(self, count: int) -> Evaluations:
        """Return the scores that came after the first ``count``."""
        with self._lock:
            new = self._count - count if count <= self._count else self._count
            scores = list(self._scores)[-new:] if new else []
            return Evaluations(self._count, scores)


class PublishedService(ParameterLink):
    """The parameter server's end, where values are replaced; many threads call it at once."""

    def __init__(self, parameters: PublishedParameters, metrics: Metrics) -> None:
        self._parameters = parameters
        self._metrics = EvaluationLog(metrics, parameters)

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""
        return self._parameters.increment_global_t(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the parameters of a policy, without their vector when ``known`` is current.

        Until the first ones are pushed under another name than the default one, they are those that
        the training has begun with, as version 0.
        """
        values = self._parameters.pull(policy)
        is_current = known is not None and known.number == values.version.number
        return replace(values, vector=None) if is_current else values

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Replace the parameters of a policy; ValueError for a gradient."""
        if not isinstance(update, NewValues):
            raise ValueError(
                "the values of this algorithm are published, and not moved by gradients"
            )
        if policy == DEFAULT:
            self._parameters.publish(
                update.vector, update.iteration, update.message, update.lineage
            )
        else:
            self._parameters.publish_other(policy, update.vector, update.iteration)
        return replace(self.pull(None, policy), vector=None)

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations behind the first ``after``."""
        return self._metrics.after(after)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics
