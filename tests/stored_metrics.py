"""Metrics that a test can look at."""

from relaax.telemetry.metrics import Metrics


class StoredMetrics(Metrics):
    """Keeps (y, x) of each name."""

    def __init__(self):
        self.values = {}

    def scalar(self, name, y, x=None):
        self.values.setdefault(name, []).append((y, x))

    def newest(self):
        """The last value of each name."""
        return {name: values[-1][0] for name, values in self.values.items()}
