"""A gradient passes the files that ``docs/architecture.md`` lists, counted with a profiler."""

import threading

import numpy as np
import pytest
from learning_parts import Driven, report
from processes import REPOSITORY, free_port
from ways import Files, documented

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.placements import InWorker
from relaax.parameters import BridgeControl
from relaax.steps import START

#: Arrays and their bytes, which are no gradients'; functions that others are handed.
ARRAYS = {
    "assembly/agents.py",
    "assembly/on_policy.py",
    "learning/arrays.py",
    "learning/networks/manifest.py",
    "learning/networks/parameters_tf.py",
    "learning/rollouts/batch.py",
    "observations.py",
    "replay/array_bytes.py",
}

#: What all calls of the bridge, or of gRPC, pass; checks and counts of one function, which are
#: stored as metrics every two seconds.
OF_ALL_CALLS = {
    "algorithm_base/bridge_base.py",
    "net/payloads.py",
    "net/refusals.py",
    "parameters/callers.py",
    "parameters/sender_totals.py",
    "telemetry/interval_metrics.py",
    "telemetry/metrics.py",
}

ROLLOUT = 3


@pytest.fixture(name="files")
def _files():
    files = Files()
    threading.setprofile(files.note)
    yield files
    threading.setprofile(None)


def files_of_a_gradient(files, monkeypatch):
    """Play with DA3C and a parameter server until it has learnt thrice; watch the third time."""
    da3c = load_algorithm(REPOSITORY / "algorithms" / "da3c")
    config = da3c.Config({"state_size": [2], "action_size": 2, "seed": 1, "episode_len": ROLLOUT})
    server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
    address = f"localhost:{free_port()}"
    running = BridgeControl().start_parameter_server(address, server.bridge())
    stub = BridgeControl().parameter_server_stub(address)
    put, learnt = InWorker.put, []

    def watched(sink, rollouts):
        learnt.append(rollouts)
        if len(learnt) < 3:
            put(sink, rollouts)
        else:
            with files:
                put(sink, rollouts)

    monkeypatch.setattr(InWorker, "put", watched)
    driven = Driven(da3c.make_batch_agent(config, stub, 0, learns_in_background=False))
    slots, states = driven.open(2), np.zeros((2, 2), np.float32)
    driven.act(report(slots, [START] * 2, [0, 0], states))
    for _ in range(3 * ROLLOUT):
        driven.act(report(slots, [0] * 2, [1, 0], states))
    driven.close()
    stub.close()
    running.stop(0)
    assert len(learnt) == 3
    return files.found


def test_a_gradient_passes_the_files_that_the_page_lists(files, monkeypatch):
    found = files_of_a_gradient(files, monkeypatch) - ARRAYS - OF_ALL_CALLS
    assert found == documented("The way of a gradient")
    assert len(found) <= 14
