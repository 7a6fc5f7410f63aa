"""PPO's losses beside numpy; Schulman et al. 2017, arXiv:1707.06347."""

import numpy as np
import pytest
import tensorflow as tf

RATIOS = np.array([[0.5, 1.0, 1.1, 1.5, 1.5]], np.float32)
ADVANTAGES = np.array([[-1.0, 2.0, 3.0, 4.0, -4.0]], np.float32)
VALID = np.array([[1.0, 1.0, 1.0, 1.0, 0.0]], np.float32)


@pytest.fixture(name="loss", scope="module")
def _loss(ppo_module):
    def loss(**keys):
        defaults = {
            "distribution": None,
            "discount": 0.99,
            "trace_decay": 0.95,
            "normalizes": False,
            "entropy_beta": 0.0,
            "value_loss_weight": 1.0,
            "clips": True,
            "kl_target": 0.01,
            "kl_cutoff": 250.0,
            "value_clip": None,
        }
        return ppo_module("method_tf").Ppo(**{**defaults, **keys})

    return loss


def test_the_clipped_surrogate_takes_the_worse_of_both(loss):
    found = loss().policy_loss(np.log(RATIOS), ADVANTAGES, VALID, tf.constant(0.2))
    # 0.5 is clipped to 0.8, which is worse where the advantage is negative; 1.5 to 1.2.
    np.testing.assert_allclose(found, -(-0.8 + 2.0 + 3.3 + 4.8), rtol=1e-6)


def test_with_a_penalty_no_ratio_is_clipped(loss):
    found = loss(clips=False).policy_loss(np.log(RATIOS), ADVANTAGES, VALID, tf.constant(0.2))
    np.testing.assert_allclose(found, -(-0.5 + 2.0 + 3.3 + 6.0), rtol=1e-6)


@pytest.mark.parametrize(("kl", "penalty"), [(0.01, 0.03), (0.02, 0.06), (0.05, 0.15 + 0.225)])
def test_the_penalty_has_a_square_above_twice_the_target(loss, kl, penalty):
    found = loss(clips=False).penalty(tf.constant(kl), tf.constant(3.0))
    np.testing.assert_allclose(found, penalty, rtol=1e-5)


def test_a_clip_needs_no_penalty(loss):
    assert float(loss().penalty(tf.constant(1.0), tf.constant(3.0))) == 0


def test_the_value_loss_is_half_the_squared_error_of_valid_steps(loss):
    values, targets = np.array([[1.0, 2.0]], np.float32), np.array([[3.0, 9.0]], np.float32)
    valid = np.array([[1.0, 0.0]], np.float32)
    assert float(loss().value_loss(values, values, targets, valid)) == 2.0


def test_a_value_that_has_moved_too_far_gains_nothing_by_that(loss):
    before, values = np.array([[0.0, 0.0]], np.float32), np.array([[1.0, -1.0]], np.float32)
    targets = np.array([[2.0, 2.0]], np.float32)
    found = loss(value_clip=0.5).value_loss(values, before, targets, np.ones_like(values))
    # The first is worse where it is clipped, to 0.5; the second where it is not.
    np.testing.assert_allclose(found, ((2 - 0.5) ** 2 + (2 + 1) ** 2) / 2)


def test_a_large_error_of_a_value_counts_in_proportion(loss):
    values = np.array([[0.0, 0.0, 0.0]], np.float32)
    targets, delta = np.array([[0.5, 2.0, -4.0]], np.float32), 1.5
    found = loss(huber_delta=delta).value_loss(values, values, targets, np.ones_like(values))
    size = np.abs(targets - values)
    expected = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    clipped = loss(huber_delta=delta, value_clip=0.5)
    moved = np.array([[1.0, 1.0, 1.0]], np.float32)
    # Values may move from 0 to 0.5: the larger error is that of 0.5 where the target lies above.
    found = clipped.value_loss(moved, values, targets, np.ones_like(values))
    np.testing.assert_allclose(found, 0.5**2 / 2 + 1.5**2 / 2 + delta * (5 - delta / 2), rtol=1e-6)


def test_the_decoupled_surrogate_clips_around_the_proximal_policy_and_weighs_by_it(loss):
    """Hilton et al. 2021: w * min(r A, clip(r) A), r against the proximal policy."""
    proximal = np.array([[0.5, 1.0, 4.0, 1.2, 9.0]], np.float32)
    found = loss(decoupled=2.0).decoupled_loss(
        np.log(RATIOS), np.log(proximal), ADVANTAGES, VALID, tf.constant(0.2)
    )
    clipped = np.minimum(RATIOS * ADVANTAGES, np.clip(RATIOS, 0.8, 1.2) * ADVANTAGES)
    expected = -(VALID * np.minimum(proximal, 2.0) * clipped).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_weights_of_the_proximal_policy_have_no_gradient(loss):
    proximal = tf.Variable(np.zeros((1, 5), np.float32))
    with tf.GradientTape() as tape:
        found = loss(decoupled=2.0).decoupled_loss(
            np.log(RATIOS), proximal, ADVANTAGES, VALID, tf.constant(0.2)
        )
    assert tape.gradient(found, proximal) is None
