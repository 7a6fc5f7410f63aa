"""What answers workers and learners, where a learner publishes the parameters."""

from relaax.algorithm_base import (
    BridgeBase,
    Evaluations,
    FloatVector,
    Metrics,
    Publication,
    PublishedInfo,
    Values,
    Version,
    Wanted,
)
from relaax.learning.published.evaluations import EvaluationLog
from relaax.learning.published.parameters import PublishedParameters


class PublishedService(BridgeBase):
    """The bridge's end at the parameter server; called by many threads at once."""

    def __init__(self, parameters: PublishedParameters, metrics: Metrics) -> None:
        self._parameters = parameters
        self._metrics = EvaluationLog(metrics, parameters)

    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""
        return self._parameters.increment_global_t(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Raise ValueError: parameters are published."""
        raise ValueError("the values of this algorithm are published, and not moved by gradients")

    def get_values(self, known: Version | None = None) -> Values:
        """Return the parameters, without their vector when ``known`` is current."""
        vector, version, global_t = self._parameters.read()
        is_current = known is not None and known.number == version
        age_s = self._parameters.age_s()
        return Values(Version(version), global_t, None if is_current else vector, age_s)

    def publish_values(
        self, vector: FloatVector, iteration: int, message: str = ""
    ) -> PublishedInfo:
        """Replace the parameters."""
        return self._parameters.publish(vector, iteration, message)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return what was published last, as far as it is wanted."""
        return self._parameters.fetch(wanted, known_hash)

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations behind the first ``after``."""
        return self._metrics.after(after)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics
