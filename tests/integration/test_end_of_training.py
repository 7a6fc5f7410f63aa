"""How a training ends: everybody saves, closes and exits with 0."""

import re
import signal

import numpy as np
import pytest
from processes import SMALL_DA3C, Training, wait_for
from worker_modes import IN_BOTH_MODES, SHARED

from relaax.algorithm_base import Phase
from relaax.client.rlx_client import Client
from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

SHORT = {**SMALL_DA3C, "max_global_step": 300}


@IN_BOTH_MODES
def test_when_the_steps_are_done_everybody_ends_with_status_zero(training: Training):
    """And at once, when the training is started again."""
    training.configure(SHORT)
    parameter_server = training.start_parameter_server()
    busy, idle = training.start_rlx_server(), training.start_rlx_server("--bind", "127.0.0.1:0")
    environments = training.start_environments(2, "--attempts", "2")
    assert parameter_server.wait() == 0
    assert busy.wait() == 0
    assert idle.wait() == 0
    assert environments.wait() == 0
    assert "the required number of steps is done" in parameter_server.output()
    assert "training is over" in environments.output()
    (manifest,) = training.checkpoints.glob("cp-*.json")
    assert int(manifest.stem.removeprefix("cp-")) >= 300
    again = training.start_parameter_server()
    assert again.wait() == 0
    assert re.search(
        rf"^restored global step 3\d\d from {training.checkpoints}$", again.output(), re.M
    )
    assert "the required number of steps is done" in again.output()


@SHARED
def test_a_training_ends_when_its_return_is_reached(training: Training):
    training.configure(SMALL_DA3C, {"goal-return": 5, "goal-episodes": 10})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(1, "--attempts", "1")
    for process in training.processes:
        assert process.wait() == 0
    assert "the mean return has reached its goal" in parameter_server.output()


@SHARED
def test_servers_that_keep_serving_act_on_and_learn_no_more(training: Training, bridge: Bridge):
    training.configure(SHORT, {"keep-serving": True})
    parameter_server = training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(1)
    wait_for(lambda: bridge.phase() is Phase.SERVING, "the training's end")
    before = bridge.get_values()
    with Client(training.rlx_server_url) as client:
        actions = [client.init([0.0] * 4)]
        actions += [client.send(1.0, [0.1] * 4) for _ in range(50)]
    assert set(actions) <= {0, 1}
    after = bridge.get_values()
    assert (after.version, after.global_t) == (before.version, before.global_t)
    np.testing.assert_array_equal(after.vector, before.vector)
    assert all(p.is_running() for p in (parameter_server, rlx_server, environments))
    parameter_server.signal(signal.SIGTERM)
    assert parameter_server.wait() == 0
    rlx_server.signal(signal.SIGTERM)
    assert rlx_server.wait() == 0
