"""What a learner has published, and a parameter server that is killed between two checkpoints."""

import signal
import time

import numpy as np
import pytest
from checkpoints import saver
from processes import SMALL_SAC, Training, wait_for
from worker_modes import SHARED

from relaax.algorithm_base import Wanted
from relaax.bridge import Bridge

pytestmark = [pytest.mark.integration, SHARED]


def saved_iteration(training: Training) -> int:
    found = saver(training.checkpoints).restore_latest()
    return -1 if found is None else int(found.tensors["published/iteration"][0])


def is_quiet(training: Training, bridge: Bridge) -> bool:
    """Return whether what is served is saved, and nothing newer is on its way."""
    before = bridge.fetch(Wanted.INFO).info.iteration
    time.sleep(0.5)  # longer than what was sent before the learner was stopped can take
    return before == bridge.fetch(Wanted.INFO).info.iteration == saved_iteration(training)


def test_a_restart_serves_the_last_version_without_the_learner(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC)  # whose first checkpoint is due in a quarter of an hour
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1")
    wait_for(lambda: saved_iteration(training) > 20, "a publication that is saved")
    learner.signal(signal.SIGSTOP)
    wait_for(lambda: is_quiet(training, bridge), "the last publication, saved")
    last = bridge.fetch(Wanted.BOTH)
    kept = saver(training.checkpoints).restore_latest()
    parameter_server.kill()
    training.start_parameter_server()
    found = bridge.fetch(Wanted.BOTH)
    np.testing.assert_array_equal(found.vector, last.vector)
    assert found.info == last.info
    assert kept is not None
    assert bridge.add(0) >= kept.global_t > 0
    learner.signal(signal.SIGCONT)
    wait_for(
        lambda: bridge.fetch(Wanted.INFO).info.iteration > last.info.iteration,
        "a newer publication",
    )
