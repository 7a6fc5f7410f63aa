"""The parameter server of an algorithm whose learner publishes."""

from relaax.algorithm_base import FloatVector, Metrics, ParameterServerBase, Saver
from relaax.algorithm_base.checkpoint import Fingerprint
from relaax.learning.parameter_server import ParameterServer
from relaax.learning.published.parameters import PublishedParameters
from relaax.learning.published.service import PublishedService


def serve_published(
    initial: FloatVector,
    fingerprint: Fingerprint,
    max_global_step: float,
    saver: Saver,
    metrics: Metrics,
) -> ParameterServerBase:
    """Return what serves ``initial`` [size], and then what is published.

    ``fingerprint`` says what a checkpoint must agree on.
    """
    parameters = PublishedParameters(initial)
    return _PublishedParameterServer(
        store=parameters,
        service=PublishedService(parameters, metrics),
        saver=saver,
        fingerprint=fingerprint,
        max_global_step=max_global_step,
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
