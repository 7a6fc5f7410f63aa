"""When a stage of a curriculum is over: conditions of the means of evaluated versions."""

import numpy as np
import pytest
from pydantic import ValidationError

from relaax.configuration.curriculum import Condition
from relaax.errors import ConfigurationError
from relaax.parameters.process.conditions import checked


def bound(**args):
    return checked(Condition(type_=Condition.Type.SimpleBound, args=args))


def converged(**args):
    condition = Condition(type_="Converged", args={"value_field": "win_rate", **args})
    return checked(condition)


@pytest.mark.parametrize(
    ("limits", "value", "expected"),
    [
        ({"lower_limit": 0.8}, 0.81, True),
        ({"lower_limit": 0.8}, 0.8, False),
        ({"lower_limit": 0}, -1.0, False),
        ({"upper_limit": 0.0}, -1.0, True),
        ({"upper_limit": 0}, 0.5, False),
        ({"lower_limit": 0.1, "upper_limit": 0.3}, 0.2, True),
        ({"lower_limit": 0.1, "upper_limit": 0.3}, 0.4, False),
    ],
)
def test_a_mean_between_its_limits_meets_a_bound(limits, value, expected):
    assert bound(field="win_rate", **limits).is_met({"win_rate": value}) is expected


@pytest.mark.parametrize("condition", [bound(field="kills", lower_limit=1), converged()])
def test_a_field_that_the_episodes_do_not_have_is_named(condition):
    with pytest.raises(ConfigurationError, match=r"'(kills|win_rate)', and the evaluated episodes"):
        condition.is_met({"version": 1.0, "won": 1.0})


def expected_by_numpy(steps, values, warmup, duration, confidence, threshold):
    """Whether each version meets the condition, computed of all versions before it."""
    kept = steps >= warmup
    met, before = [], -np.inf
    for index in range(len(steps)):
        if not kept[index]:
            met.append(False)
            continue
        in_window = kept & (np.arange(len(steps)) <= index) & (steps > before - duration)
        oldest, window = steps[in_window].min(), np.sort(values[in_window])
        cut = int(np.floor(np.round(len(window) * (1 - confidence) / 2, 9)))
        inner = np.append(window[cut : len(window) - cut], values[index])
        met.append(bool(steps[index] - oldest >= duration and np.ptp(inner) <= threshold))
        before = steps[index]
    return met


@pytest.mark.parametrize("confidence", [1.0, 0.9, 0.5])
@pytest.mark.parametrize("warmup", [0, 300])
def test_convergence_is_that_of_numpys_sorted_windows(confidence, warmup):
    random = np.random.default_rng(3)
    steps = np.cumsum(random.integers(1, 12, 400)).astype(float)
    noise = random.normal(0, 0.05, 400) * (random.random(400) < 0.3)
    values = 1 - np.exp(-steps / 500) + noise
    args = {"warmup_step": warmup, "duration": 100, "confidence": confidence, "threshold": 0.1}
    condition = converged(**args)
    met = [
        condition.is_met({"version": step, "win_rate": value})
        for step, value in zip(steps.tolist(), values.tolist(), strict=True)
    ]
    assert met == expected_by_numpy(steps, values, warmup, 100, confidence, 0.1)
    assert 10 < sum(met) < 390


def test_of_twenty_values_ninety_percent_leave_out_one_at_each_end():
    condition = converged(duration=19)
    values = [0.0, *[0.5] * 17, 1.0, 0.5]
    met = [condition.is_met({"version": step, "win_rate": y}) for step, y in enumerate(values)]
    assert met == [False] * 19 + [True]


@pytest.mark.parametrize(
    ("type_", "args", "expected"),
    [
        ("SimpleBound", {"field": "win_rate"}, "needs lower_limit, upper_limit or both"),
        ("SimpleBound", {"field": "a", "lower_limit": 2, "upper_limit": 1}, "no number is above 2"),
        ("SimpleBound", {"field": "a", "limit": 2}, "Extra inputs are not permitted"),
        ("Converged", {"value_field": "a", "confidence": 2}, "less than or equal to 1"),
        ("Converged", {}, "value_field"),
        ("Linear", {}, "must be one of SimpleBound, Converged"),
    ],
)
def test_arguments_that_cannot_be_are_refused(type_, args, expected):
    with pytest.raises(ValidationError, match=expected):
        Condition(type_=type_, args=args)
