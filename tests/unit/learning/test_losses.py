"""Terms of losses, against hand-worked cases."""

import numpy as np
import pytest
import tensorflow as tf

from relaax.learning.losses_tf import clipped_policy_loss, policy_loss, value_loss

pytestmark = pytest.mark.usefixtures("tensorflow")


def column(*values):
    """One rollout as a [T, 1] tensor."""
    return tf.constant([[value] for value in values], tf.float32)


def slopes_of(loss, *inputs):
    """The gradients of ``loss(*inputs)`` by its inputs; None for what it does not depend on."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = loss(*inputs)
    slopes = tape.gradient(value, inputs)
    return [None if slope is None else slope.numpy()[:, 0].tolist() for slope in slopes]


def test_the_policy_loss_weighs_log_likelihoods_by_advantages():
    """-(-1 * 2 + -3 * 4), and the last row is no step."""
    assert float(policy_loss(column(-1, -3, -5), column(2, 4, 100), column(1, 1, 0))) == 14.0


def test_no_gradient_flows_through_advantages():
    valid = column(1, 1)
    slopes = slopes_of(lambda a, b: policy_loss(a, b, valid), column(-1, -3), column(2, 4))
    assert slopes == [[-2, -4], None]
    slopes = slopes_of(
        lambda a, b: clipped_policy_loss(a, b, valid, 0.2), column(0, 0), column(2, 4)
    )
    assert slopes == [[-2, -4], None]


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "moves"),
    [
        (1.1, 2.0, 2.2, True),  # within the limits
        (1.5, 2.0, 2.4, False),  # already more probable by more than a fifth
        (0.5, 2.0, 1.0, True),  # less probable than it was: it may come back
        (0.5, -2.0, -1.6, False),  # already less probable by more than a fifth
        (1.5, -2.0, -3.0, True),
    ],
)
def test_a_clipped_policy_loss_stops_at_its_limit(ratio, advantage, gain, moves):
    def loss(log_ratios):
        return clipped_policy_loss(log_ratios, column(advantage), column(1), clip=0.2)

    log_ratios = column(np.log(ratio))
    assert float(loss(log_ratios)) == pytest.approx(-gain, rel=1e-5)
    assert (abs(slopes_of(loss, log_ratios)[0][0]) > 0) == moves


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_a_ratio_that_float32_cannot_hold_spoils_no_gradient(advantage):
    """One of thousands of actions may have become so much more probable."""
    slopes = slopes_of(
        lambda log_ratios: clipped_policy_loss(
            log_ratios, column(advantage, 2), column(1, 1), clip=0.2
        ),
        column(100, 0),
    )
    assert slopes == [[0, -2]]


def test_the_value_loss_is_half_the_squared_error():
    """(3 - 1)^2 / 2 + (5 - 2)^2 / 2, and the last row is no step."""
    values, targets, valid = column(1, 2, 0), column(3, 5, 100), column(1, 1, 0)
    assert float(value_loss(values, targets, valid)) == 6.5
    assert slopes_of(lambda a, b: value_loss(a, b, valid), values, targets) == [[-2, -3, 0], None]
