"""What people see of a population's manager: figures, metrics and the live line."""

from stored_metrics import StoredMetrics

from relaax.populations.process.main import Shown
from relaax.populations.process.managers import Manager


class Counting(Manager):
    """Does one thing each time."""

    interval_s = 1.0

    def __init__(self):
        self.done = 0

    def advance(self):
        self.done += 1

    def write(self):
        pass

    def numbers(self):
        return {"exploits": self.done}


def test_numbers_are_figures_at_once_and_metrics_when_they_change():
    manager, metrics = Counting(), StoredMetrics()
    shown = Shown(manager, metrics)
    for _ in range(2):
        shown.note()
    assert metrics.values == {}
    manager.advance()
    shown.note()
    assert [y for y, _ in metrics.values["exploits"]] == [1]
    ((sample,),) = [metric.samples for metric in shown.figures()]
    assert (sample.name, sample.labels, sample.value) == (
        "relaax_population", {"name": "exploits"}, 1,
    )  # fmt: skip
