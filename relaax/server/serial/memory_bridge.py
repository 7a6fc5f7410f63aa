"""The bridge in one process: a worker's calls arrive at the parameter server as they are made."""

from dataclasses import replace

import numpy as np

from relaax.algorithm_base import (
    BridgeBase,
    Evaluations,
    FloatVector,
    Lineage,
    Metrics,
    Phase,
    Publication,
    PublishedInfo,
    Values,
    Version,
    Wanted,
)


class MemoryBridge(BridgeBase):
    """The worker's end for ``service``, which ``ParameterServerBase.bridge()`` returned.

    Vectors are copied on the way, as they are by gRPC: neither side sees what the other one does to
    its own. It is a ``RunningParameterServer``, too, which listens to this process alone.
    """

    def __init__(self, service: BridgeBase) -> None:
        self._service = service
        self._phase = Phase.TRAINING

    def increment_global_t(self, steps: int = 1) -> int:
        """See BridgeBase."""
        return self._service.add(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """See BridgeBase."""
        self._service.apply(gradients.copy(), 0, computed_with)

    def get_values(self, known: Version | None = None) -> Values:
        """See BridgeBase."""
        return _copied(self._service.get(known))

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """See BridgeBase."""
        return _copied(self._service.apply(gradients.copy(), steps, computed_with))

    def publish_values(
        self, vector: FloatVector, iteration: int, message: str = "", lineage: Lineage | None = None
    ) -> PublishedInfo:
        """See BridgeBase."""
        copied = np.array(vector, np.float32)
        return self._service.publish_values(copied, iteration, message, lineage)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """See BridgeBase."""
        return self._service.fetch(wanted, known_hash)

    def evaluations(self, after: int = 0) -> Evaluations:
        """See BridgeBase."""
        return self._service.evaluations(after)

    def metrics(self) -> Metrics:
        """See BridgeBase."""
        return self._service.metrics()

    def phase(self) -> Phase:
        """See BridgeBase."""
        return self._phase

    def set_phase(self, phase: Phase) -> None:
        """See RunningParameterServer."""
        self._phase = phase

    def all_know(self) -> bool:
        """See RunningParameterServer: there are no others."""
        return True

    def stop(self, grace_s: float) -> None:
        """See RunningParameterServer: there is nothing to close."""


def _copied(values: Values) -> Values:
    return values if values.vector is None else replace(values, vector=values.vector.copy())
