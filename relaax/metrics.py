"""The metrics interface that parameter server, agent and environment share."""

from abc import ABC, abstractmethod


class Metrics(ABC):
    """Where scalars go. Storing one never blocks the caller and never raises on a full queue."""

    @abstractmethod
    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store ``y`` under ``name`` at ``x``, which defaults to the global step."""

    def __call__(self) -> "Metrics":
        """Return these metrics: ``self.metrics().scalar(...)`` works in agents, where ``metrics``
        is a method, and in a parameter server, where it is an attribute.
        """
        return self


class NullMetrics(Metrics):
    """Metrics that are not kept."""

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Drop the value."""
