"""The bridge in one process: a worker's calls arrive at the parameter server as they are made."""

from dataclasses import replace

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    Metrics,
    NewValues,
    ParameterLink,
    Phase,
    Update,
    Values,
    Version,
)


class MemoryBridge(ParameterLink):
    """The worker's end for ``service``, which ``ParameterServerBase.bridge()`` returned.

    Vectors are copied on the way, as they are by gRPC: neither side sees what the other one does to
    its own. It is a ``RunningParameterServer``, too, which listens to this process alone.
    """

    def __init__(self, service: ParameterLink) -> None:
        self._service = service
        self._phase = Phase.TRAINING

    def add(self, steps: int) -> int:
        """See ParameterLink."""
        return self._service.add(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        return _copied(self._service.pull(known, policy))

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """See ParameterLink."""
        if isinstance(update, NewValues):
            update = self.with_lineage(update)
        copied = replace(update, vector=update.vector.copy())
        return _copied(self._service.push(copied, policy))

    def evaluations(self, after: int = 0) -> Evaluations:
        """See ParameterLink."""
        return self._service.evaluations(after)

    def metrics(self) -> Metrics:
        """See ParameterLink."""
        return self._service.metrics()

    def phase(self) -> Phase:
        """See ParameterLink."""
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
