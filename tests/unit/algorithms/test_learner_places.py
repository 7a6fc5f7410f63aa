"""A learner in a worker, and one in a process of its own."""

from dataclasses import replace

import numpy as np
import pytest
from driven_learner import DrivenLearner
from processes import REPOSITORY
from rollout_samples import random_rollouts

from relaax.algorithm_base import CheckpointMismatch, NullMetrics
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.configuration.algorithm_loader import load_algorithm

CHOICES = {"state_size": [4], "action_size": 3, "hidden_layers": [8], "seed": 3}
IN_A_PROCESS = {**CHOICES, "learner": "process", "vtrace": True, "rollouts_per_update": 3}


@pytest.fixture(name="da3c_algorithm")
def _algorithm():
    return load_algorithm(REPOSITORY / "algorithms" / "da3c")


def test_da3cs_learner_in_a_process_goes_on_to_the_bit(da3c_algorithm):
    config = da3c_algorithm.Config(IN_A_PROCESS)
    one = random_rollouts(config.network)
    batches = [replace(one, rewards=one.rewards * scale) for scale in (1, -1, 2, 3)]
    whole, half, restored = (
        DrivenLearner(da3c_algorithm.make_learner(config, 3)) for _ in range(3)
    )
    first = whole.vector()
    for batch in batches:
        assert whole.step({"rollouts": batch}).updates == 1
    for batch in batches[:2]:
        half.step({"rollouts": batch})
    restored.restore(half.state())
    for batch in batches[2:]:
        restored.step({"rollouts": batch})
    assert not np.array_equal(whole.vector(), first)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(restored.state()[name], value, err_msg=name)


def test_a_batch_without_a_step_is_no_step_of_the_learner(da3c_algorithm):
    config = da3c_algorithm.Config(IN_A_PROCESS)
    learner = DrivenLearner(da3c_algorithm.make_learner(config, 3))
    batch = random_rollouts(config.network)
    assert learner.step({"rollouts": replace(batch, valid=np.zeros_like(batch.valid))}).updates == 0


@pytest.mark.parametrize("places", [("worker", "process"), ("process", "worker")])
def test_the_checkpoint_of_another_place_is_refused(da3c_algorithm, tmp_path, places):
    saver = CheckpointSaver(DirectoryStore(tmp_path), keep=1)
    saving, restoring = (
        da3c_algorithm.ParameterServer(
            da3c_algorithm.Config({**CHOICES, "learner": place}), saver, NullMetrics()
        )
        for place in places
    )
    saving.save_checkpoint()
    with pytest.raises(CheckpointMismatch):
        restoring.restore_latest_checkpoint()
