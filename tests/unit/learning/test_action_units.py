"""Actions of a policy become those of the plant, and come back."""

import json

import numpy as np
import pytest

from relaax.algorithm_base.checkpoint import ACTION_UNITS
from relaax.learning.action_units import ActionUnits
from relaax.spaces import box

ENDS = np.array([[-1.0], [0.0], [1.0]], np.float32)

#: Narrow, wide, off the middle, far from 0: two bounds each.
BOUNDS = [(-0.01, 0.01), (-2, 2), (-1000, 1000), (3, 7), (0, 255), (1e6 - 0.3, 1e6 + 0.3)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_one_leads_from_the_middle_to_a_bound(low, high):
    found = ActionUnits([low], [high]).to_plant(ENDS)
    assert found.dtype == np.float32
    spacing = np.spacing(np.float32(max(-low, high)))
    np.testing.assert_allclose(found[:, 0], [low, (low + high) / 2, high], rtol=0, atol=spacing)


def test_rounding_leads_no_action_beyond_its_bounds_and_nothing_else_does():
    random = np.random.default_rng(0)
    low = random.normal(size=1000) * 10.0 ** random.integers(-6, 7, 1000)
    high = low + np.abs(low) * random.uniform(1e-5, 3, 1000)
    units = ActionUnits(low, high)
    for size in (1, 1 + 1e-6, 5, 1e30):
        for sign in (-size, size):
            found = units.to_plant(np.full((1, 1000), sign, np.float32)).astype(np.float64)
            assert ((low <= found) & (found <= high)).all()


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_actions_come_back_from_the_plant(low, high):
    units = ActionUnits([low], [high])
    policys = np.random.default_rng(1).uniform(-1, 1, (1000, 1)).astype(np.float32)
    plants = units.to_plant(policys)
    found = units.from_plant(plants)
    assert found.dtype == np.float32
    step = np.spacing(np.float32(max(-low, high))) / (high - low)
    np.testing.assert_allclose(found, policys, rtol=0, atol=2 * step + 1e-6)
    np.testing.assert_array_equal(units.to_plant(found), plants)


def test_between_minus_one_and_one_nothing_is_changed():
    units = ActionUnits([-1.0], [1.0])
    drawn = np.random.default_rng(1).normal(size=(1000, 1)).astype(np.float32)
    np.testing.assert_array_equal(units.to_plant(drawn), np.clip(drawn, -1, 1))
    assert units.fingerprint == {}


def test_a_number_without_both_bounds_has_a_scale_around_0_and_is_cut_at_the_one_it_has():
    infinity = np.inf
    units = ActionUnits(
        [0, -infinity, -infinity, -10], [infinity, 5, infinity, 10], [20.0, 2.0, 3.0, 99.0]
    )
    found = units.to_plant(np.array([[1, 1, 1, 1], [-1, -1, -9, -1], [2, 9, 2, 0]], np.float32))
    np.testing.assert_allclose(found, [[20, 2, 3, 10], [0, -2, -27, -10], [40, 5, 6, 0]])
    np.testing.assert_allclose(units.from_plant(np.float32([[20, -2, 6, 5]])), [[1, -1, 2, 0.5]])
    np.testing.assert_array_equal(units.is_bounded, [False, False, False, True])


@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
def test_actions_keep_their_shape(shape):
    units = ActionUnits(np.full(shape, 2.0), np.full(shape, 6.0))
    for count in (0, 4):
        actions = np.zeros((count, *shape), np.float32)
        np.testing.assert_array_equal(units.to_plant(actions), actions + 4)
        np.testing.assert_array_equal(units.from_plant(actions + 4), actions)


def test_a_space_has_its_units_and_units_their_space():
    bounds = {"low": [0, None], "high": [8, 1]}
    units = ActionUnits.of({**box("float32", (2,)), **bounds}, scale=3)
    np.testing.assert_allclose(units.to_plant(np.float32([[1, -1]])), [[8, -3]])
    assert units.space == {**box("float32", (2,)), **bounds}
    assert ActionUnits.of(units.space).space == json.loads(json.dumps(units.space))
    assert ActionUnits.of({**box("float32", (2, 1)), "low": -3, "high": 3}).space["low"] == -3
    assert ActionUnits.of({"type": "Discrete", "n": 3}) is None


def test_a_checkpoint_is_told_what_one_stands_for_and_not_where_actions_are_cut():
    def told(*values):
        return json.loads(json.dumps(ActionUnits(*values).fingerprint))

    assert told([-2, -2], [2, 2]) == {ACTION_UNITS: [-2, 2]}
    assert told([-2, -np.inf], [2, np.inf], 0.5) == {ACTION_UNITS: [[-2, -0.5], [2, 0.5]]}
    assert told([-np.inf], [np.inf]) == told([-np.inf], [0.5]) == told([-1], [1]) == {}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([0.0, 0.0], [1.0]), r"low has shape \(2,\), high has \(1,\)"),
        (([1.0], [1.0]), "low must be below high"),
        (([-np.finfo(np.float32).max], [1.0]), "low .* is no bound of a plant: leave it out"),
        (([1e9], [1e9 + 1]), "so near that float32, .* has no two numbers between them"),
        (([-np.inf], [1.0], [-1.0]), "scale must be a positive number"),
        (([-np.inf], [1.0], [np.inf]), "scale must be a positive number"),
    ],
)
def test_units_that_cannot_be_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ActionUnits(*values)


def test_bounds_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"low must be one number, or lists of numbers of shape"):
        ActionUnits.of({**box("float32", (3,)), "low": [0, 0], "high": 1})
