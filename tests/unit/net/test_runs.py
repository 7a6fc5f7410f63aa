"""A server's port of gRPC is for the processes of its own training."""

from contextlib import closing

import numpy as np
import pytest
from processes import free_port

from relaax.algorithm_base import NullMetrics
from relaax.errors import BridgeError
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters


@pytest.fixture(name="address")
def _address(monkeypatch):
    monkeypatch.setenv("RELAAX_RUN", "cartpole-2")
    address = f"127.0.0.1:{free_port()}"
    service = ParameterService(PublishedParameters(np.zeros(3, np.float32)), NullMetrics())
    server = BridgeControl().start_parameter_server(address, service)
    yield address
    server.stop(0)


@pytest.mark.parametrize("run", ["cartpole-2", ""])
def test_callers_of_the_same_or_of_an_unknown_training_are_answered(address, monkeypatch, run):
    monkeypatch.setenv("RELAAX_RUN", run)
    with closing(Bridge(address)) as bridge:
        assert bridge.add(3) == 3


def test_callers_of_another_training_are_refused_with_both_names(address, monkeypatch):
    monkeypatch.setenv("RELAAX_RUN", "Größe 1")
    names = "the caller belongs to the training Größe 1, and this server to the training cartpole-2"
    with closing(Bridge(address)) as bridge, pytest.raises(BridgeError, match=names):
        bridge.add(3)
