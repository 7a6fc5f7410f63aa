"""Values that are learnt with mean 0 and standard deviation 1, beside numpy."""

import numpy as np
import pytest
from driven_learner import DrivenLearner
from numpy_returns import returns_of
from rollout_samples import random_rollouts

SMALL = {"state_size": [4], "action_size": 3, "hidden_layers": [8], "seed": 1}


@pytest.fixture(name="scale_of")
def _scale_of(ppo_module):
    return ppo_module("value_scale").ValueScale


def test_the_scale_is_that_of_the_mean_over_batches(scale_of):
    batches = [np.array([1.0, 3.0]), np.array([10.0, 20.0, 60.0])]
    scale = scale_of()
    assert scale.normalized(np.float32([5.0])).tolist() == [5.0]
    for batch in batches:
        scale.add(batch.astype(np.float32))
    weights = np.array([0.99999, 1.0]) / 1.99999  # the newer batch counts a little more
    mean = weights @ [batch.mean() for batch in batches]
    deviation = np.sqrt(weights @ [(batch**2).mean() for batch in batches] - mean**2)
    returns = np.float32([-2.0, 0.0, 50.0])
    np.testing.assert_allclose(scale.normalized(returns), (returns - mean) / deviation, rtol=1e-4)
    np.testing.assert_allclose(scale.restored(scale.normalized(returns)), returns, atol=1e-4)


def test_returns_of_one_size_are_not_blown_up(scale_of):
    scale = scale_of()
    scale.add(np.full(5, 3.0, np.float32))
    np.testing.assert_allclose(scale.normalized(np.float32([3.0, 4.0])), [0, 10], atol=1e-3)


def test_advantages_are_those_of_the_restored_values_and_targets_have_the_scale(ppo, ppo_module):
    scale = ppo_module("value_scale").ValueScale()
    scale.add(np.float32([2.0, 6.0]))  # mean 4, deviation 2
    surrogate = ppo_module("method_tf").Ppo(
        distribution=None, discount=0.9, trace_decay=0.8, normalizes=False, entropy_beta=0.0,
        value_loss_weight=1.0, clips=True, kl_target=0.01, kl_cutoff=250.0, value_clip=None,
        value_scale=scale,
    )  # fmt: skip
    rollouts = random_rollouts(ppo.Config(SMALL).network)
    outputs = np.random.default_rng(4).normal(size=(*rollouts.starts.shape, 1)).astype(np.float32)
    found = surrogate.targets(rollouts, {"value": outputs})
    values = outputs[..., 0].astype(np.float64) * 2 + 4
    returns = np.stack(
        [
            returns_of(
                rollouts.rewards[:, k], rollouts.terminated[:, k], rollouts.valid[:, k],
                values[:, k], 0.9, 0.8,
            )
            for k in range(rollouts.count)
        ],
        axis=1,
    )  # fmt: skip
    is_step = rollouts.valid > 0
    advantages = (returns - values[:-1])[is_step]
    np.testing.assert_allclose(found["advantages"].numpy()[is_step], advantages, atol=1e-4)
    seen = returns[is_step]
    weights = np.array([0.99999, 1.0]) / 1.99999
    mean = weights @ [4.0, seen.mean()]
    deviation = np.sqrt(weights @ [20.0, (seen**2).mean()] - mean**2)
    np.testing.assert_allclose(
        found["returns"].numpy()[is_step], (seen - mean) / deviation, atol=1e-3
    )


def test_a_learner_goes_on_with_the_scale_that_it_has_saved(ppo):
    config = ppo.Config({**SMALL, "normalize_values": True})
    first, second = (DrivenLearner(ppo.make_learner(config, 1)) for _ in range(2))
    first.step({"rollouts": random_rollouts(config.network)})
    saved = first.state()
    assert saved["value scale"][2] > 0
    second.restore(saved)
    np.testing.assert_array_equal(second.state()["value scale"], saved["value scale"])
    without = {name: array for name, array in saved.items() if name != "value scale"}
    with pytest.raises(ValueError, match="the checkpoint is of a training without"):
        second.restore(without)


@pytest.mark.parametrize("keys", [{"learner": "worker"}, {"learners": {"count": 2}}])
def test_several_learners_with_a_scale_each_are_refused(ppo, keys):
    with pytest.raises(ValueError, match="normalize_values needs one learner in a process"):
        ppo.Config({**SMALL, "normalize_values": True, **keys})
