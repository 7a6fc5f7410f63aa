"""Clipping by the global norm."""

import numpy as np
import pytest

from relaax.parameters.optimizers import clip_by_global_norm as clip


def test_a_longer_gradient_is_scaled_down_to_the_limit():
    clipped, norm = clip(np.array([3.0, 4.0], np.float32), 2.5)
    assert norm == 5.0
    np.testing.assert_allclose(clipped, [1.5, 2.0])


@pytest.mark.parametrize("limit", [5.0, None])
def test_a_gradient_within_the_limit_stays_as_it_is(limit):
    gradient = np.array([3.0, 4.0], np.float32)
    clipped, norm = clip(gradient, limit)
    assert norm == 5.0
    assert clipped is gradient


def test_squares_that_float32_cannot_hold_are_counted():
    clipped, norm = clip(np.array([3e25, 4e25], np.float32), 10.0)
    assert norm == pytest.approx(5e25)
    np.testing.assert_allclose(clipped, [6.0, 8.0], rtol=1e-5)


@pytest.mark.filterwarnings("error")
def test_a_gradient_that_is_not_finite_has_no_finite_norm():
    for entry in (np.inf, np.nan):
        assert not np.isfinite(clip(np.array([1.0, entry], np.float32), None)[1])
