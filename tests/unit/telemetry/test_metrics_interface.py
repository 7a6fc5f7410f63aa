"""``metrics`` is a method of agents and an attribute of parameter servers."""

from relaax.algorithm_base import Metrics, NullMetrics, NullSaver, ParameterServerBase


class Stored(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y, x))


class Mine(ParameterServerBase):
    def restore_latest_checkpoint(self):
        self.metrics().scalar("as in an agent", 1)
        self.metrics.scalar("as an attribute", 2)

    def save_checkpoint(self):
        pass

    def global_t(self):
        return 0

    def bridge(self):
        raise NotImplementedError


def test_both_ways_to_store_a_scalar_work_in_a_parameter_server():
    stored = Stored()
    Mine(None, NullSaver(), stored).restore_latest_checkpoint()
    assert stored.values == [("as in an agent", 1, None), ("as an attribute", 2, None)]


def test_metrics_that_are_not_kept_can_be_called_too():
    metrics = NullMetrics()
    assert metrics() is metrics
