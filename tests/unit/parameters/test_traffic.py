"""What a parameter server counts: calls by kind, and the bytes of vectors."""

from types import SimpleNamespace

import numpy as np
import pytest
from stored_metrics import StoredMetrics

from relaax.parameters import bridge_pb2, callers, service
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters
from relaax.parameters.vectors import WithVector

VECTOR = np.arange(3, dtype=np.float32)
CALL = SimpleNamespace()

RATES = {"publishes": 1, "reads": 2, "bytes in": 12, "bytes out": 12}


@pytest.fixture(name="clock")
def _clock(monkeypatch):
    """The seconds that a parameter server sees pass."""
    now = [0.0]
    make = callers.Traffic
    monkeypatch.setattr(service, "Traffic", lambda metrics: make(metrics, lambda: now[0]))
    return now


def test_calls_are_counted_by_kind_and_vectors_by_bytes(clock):
    stored = StoredMetrics()
    servicer = service.ParameterServerServicer(
        ParameterService(PublishedParameters(np.zeros(3, np.float32)), stored)
    )
    servicer.push(WithVector(bridge_pb2.Update(new_values=bridge_pb2.NewValues()), VECTOR), CALL)
    values = servicer.pull(bridge_pb2.Known(), CALL).fields
    clock[0] = 1.0
    known = bridge_pb2.Known(incarnation=values.incarnation, version=values.version)
    servicer.pull(known, CALL)
    assert stored.newest() == {
        f"parameter server/{name} per second": rate for name, rate in RATES.items()
    }
