"""IMPALA: V-trace at a learner of its own, with the paper's defaults."""

import numpy as np
import pytest
from driven_learner import DrivenLearner
from pydantic import ValidationError
from rollout_samples import random_rollouts
from trained import DISCRETE, algorithm_of

from relaax.algorithm_base import NullMetrics, NullSaver


def test_the_defaults_are_those_of_the_paper():
    settings = algorithm_of("impala", DISCRETE)[1].settings
    assert (settings.vtrace.clip_rho, settings.vtrace.clip_c) == (1.0, 1.0)
    assert (settings.episode_len, settings.rollouts_per_update) == (20, 32)
    assert (settings.initial_learning_rate, settings.value_loss_weight) == (6e-4, 0.5)
    assert (settings.entropy_beta, settings.rewards_gamma) == (0.01, 0.99)
    rmsprop = settings.RMSProp
    assert (rmsprop.decay, rmsprop.gradient_norm_clipping) == (0.99, 40)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"learner": "worker"}, "learns in a process of its own, with V-trace"),
        ({"vtrace": False}, "learns in a process of its own, with V-trace"),
        ({"policy_clip": 0.2}, "policy_clip and vtrace exclude each other"),
        ({"wait_for_learning": "always"}, "no effect without learner: worker"),
    ],
)
def test_settings_that_are_not_impalas_are_refused(change, reason):
    with pytest.raises(ValidationError, match=reason):
        algorithm_of("impala", {**DISCRETE, **change})


def test_its_learner_makes_the_step_of_da3cs_with_vtrace():
    keys = {**DISCRETE, "rollouts_per_update": 3}
    impala, ours = algorithm_of("impala", keys)
    same = {"episode_len": 20, "initial_learning_rate": 6e-4, "learner": "process", "vtrace": True}
    da3c, theirs = algorithm_of("da3c", {**keys, **same})
    batch = random_rollouts(ours.network)
    found, expected = (
        DrivenLearner(algorithm.make_learner(config, 3))
        for algorithm, config in ((impala, ours), (da3c, theirs))
    )
    before = found.vector()
    assert found.step({"rollouts": batch}).updates == 1
    expected.step({"rollouts": batch})
    assert not np.array_equal(found.vector(), before)
    np.testing.assert_array_equal(found.vector(), expected.vector())


def test_several_learners_move_one_set_of_parameters():
    section = {**DISCRETE, "learners": {"count": 2, "gradients": "asynchronous"}}
    algorithm, config = algorithm_of("impala", section)
    server = algorithm.ParameterServer(config, NullSaver(), NullMetrics())
    learners = [
        DrivenLearner(algorithm.make_learner(config, seed), server.bridge()) for seed in (1, 2)
    ]
    batch = random_rollouts(config.network)
    for learner in learners:
        assert learner.step({"rollouts": batch}).updates == 1
    assert server.bridge().pull().version.number == 2
