"""What answers the workers."""

from relaax.algorithm_base import DEFAULT, Metrics, ParameterLink, Update, Values, Version
from relaax.algorithm_base.bridge_base import gradient_of, require_default
from relaax.parameters.parameter_store import ParameterStore


class ParameterService(ParameterLink):
    """The parameter server's end, where gradients move the values; many threads call it at once."""

    def __init__(self, store: ParameterStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""
        return self._store.increment_global_t(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the parameters, without their vector when ``known`` is current."""
        require_default(policy)
        parameters, version, global_t = self._store.read()
        is_current = known is not None and known.number == version
        return Values(Version(version), global_t, None if is_current else parameters)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply one gradient, count its steps and return the new parameters."""
        require_default(policy)
        gradient = gradient_of(update)
        self._store.apply(gradient.vector, gradient.steps)
        return self.pull(gradient.computed_with)

    def metrics(self) -> Metrics:
        """Return where scalars go."""
        return self._metrics
