"""What people see of a population's manager: figures, metrics and the live line."""

import contextlib

import pytest
from member_servers import served
from processes import free_port
from stored_metrics import StoredMetrics

from relaax.errors import ParameterServerAway
from relaax.populations.membership import Membership
from relaax.populations.process.main import ManagerFigures, silent
from relaax.populations.process.managers import Manager
from relaax.populations.stub import MemberStub


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
        return {"exploits": self.done, "mean return of a": 0.5, "mean return of b": 2.5}


def test_numbers_are_figures_at_once_and_metrics_when_they_change():
    manager, metrics = Counting(), StoredMetrics()
    shown = ManagerFigures(manager, metrics)
    for _ in range(2):
        shown.note()
    assert metrics.values == {}
    manager.advance()
    shown.note()
    assert [y for y, _ in metrics.values["exploits"]] == [1]
    samples = [sample for metric in shown.figures() for sample in metric.samples]
    assert [(each.name, each.labels, each.value) for each in samples] == [
        ("relaax_population_exploits", {}, 1),
        ("relaax_population_mean_return", {"policy": "a"}, 0.5),
        ("relaax_population_mean_return", {"policy": "b"}, 2.5),
    ]


def test_a_manager_is_not_ready_while_a_parameter_server_does_not_answer():
    away = MemberStub(f"localhost:{free_port()}", call_timeout_s=0.1)
    with served(Membership(None)) as here, contextlib.closing(away):
        stubs = {"a": here, "b": away}
        assert silent(stubs) is None  # nothing was asked
        here.membership()
        with pytest.raises(ParameterServerAway):
            away.membership()
        assert silent(stubs) == "no answer of the parameter server of b"
        assert silent({"a": here}) is None
