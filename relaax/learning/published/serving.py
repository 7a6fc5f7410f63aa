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
    return ParameterServer(
        store=parameters,
        service=PublishedService(parameters, metrics),
        saver=saver,
        fingerprint=fingerprint,
        max_global_step=max_global_step,
    )
