"""What answers the workers."""

from relaax.algorithm_base import BridgeBase, FloatVector, Metrics, Values, Version
from relaax.parameters.parameter_store import ParameterStore


class ParameterService(BridgeBase):
    """The bridge's end at the parameter server; called by many threads at once."""

    def __init__(self, store: ParameterStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""
        return self._store.increment_global_t(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Apply one gradient."""
        self._store.apply(gradients, steps=0)

    def get_values(self, known: Version | None = None) -> Values:
        """Return the parameters, without their vector when ``known`` is current."""
        parameters, version, global_t = self._store.read()
        is_current = known is not None and known.number == version
        return Values(Version(version), global_t, None if is_current else parameters)

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply one gradient, count its steps and return the new parameters."""
        self._store.apply(gradients, steps)
        return self.get_values(computed_with)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics
