"""The bridge of an agent whose parameters are pulled for it."""

from relaax.algorithm_base import (
    BridgeBase,
    FloatVector,
    Metrics,
    Phase,
    Publication,
    Values,
    VariableSink,
    Version,
    Wanted,
)


class PulledBridge(BridgeBase):
    """Hands on all calls, but for values: these change when they are replaced here, and only then.

    A ``VariableFeed``: an agent that would ask for newer values by itself is given them instead.
    """

    def __init__(self, bridge: BridgeBase) -> None:
        self._bridge = bridge
        self._values = bridge.get_values()
        self._sinks: list[VariableSink] = []

    def subscribe(self, sink: VariableSink) -> None:
        """Give ``sink`` whatever replaces the values."""
        self._sinks.append(sink)

    def replace(self, vector: FloatVector, number: int) -> None:
        """Let ``vector`` [size] be the values, of version ``number``."""
        self._values = Values(Version(number), self._values.global_t, vector)
        for sink in self._sinks:
            sink.publish(self._values)

    def get_values(self, known: Version | None = None) -> Values:
        """Return the values that were pulled last."""
        return self._values

    def increment_global_t(self, steps: int = 1) -> int:
        """See BridgeBase."""
        return self._bridge.increment_global_t(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """See BridgeBase."""
        self._bridge.apply_gradients(gradients, computed_with)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """See BridgeBase."""
        return self._bridge.fetch(wanted, known_hash)

    def metrics(self) -> Metrics:
        """See BridgeBase."""
        return self._bridge.metrics()

    def phase(self) -> Phase:
        """See BridgeBase."""
        return self._bridge.phase()
