"""What a learner has published, and a parameter server that is killed between two checkpoints."""

import signal

import numpy as np
import pytest
from checkpoints import saver
from processes import SMALL_SAC, Training, wait_for
from worker_modes import SHARED

from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]


def saved_iteration(training: Training) -> int:
    found = saver(training.checkpoints).restore_latest()
    return -1 if found is None else int(found.tensors["published/iteration"][0])


def test_a_restart_serves_the_last_version_without_the_learner(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC)  # whose first checkpoint is due in a quarter of an hour
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    wait_for(lambda: saved_iteration(training) > 20, "a publication that is saved")
    learner.signal(signal.SIGSTOP)
    parameter_server.kill()
    kept = saver(training.checkpoints).restore_latest()
    assert kept is not None
    training.start_parameter_server()
    found = bridge.pull()
    np.testing.assert_array_equal(found.vector, kept.tensors["parameters"])
    assert found.info.iteration == int(kept.tensors["published/iteration"][0])
    assert bridge.add(0) >= kept.global_t > 0
    learner.signal(signal.SIGCONT)
    wait_for(lambda: bridge.pull().info.iteration > found.info.iteration, "a newer publication")
