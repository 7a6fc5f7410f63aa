"""Returns, V-trace and Retrace against hand-worked cases and independent computations in numpy."""

import numpy as np
import pytest
from numpy_returns import retrace_of

from relaax.learning.returns_tf import n_step_targets, normalized, retrace_targets, vtrace_targets

pytestmark = pytest.mark.usefixtures("tensorflow")

DISCOUNT = 0.9


def columns(*rows):
    """One rollout as [T, 1] columns."""
    return [np.array(column, np.float32)[:, np.newaxis] for column in zip(*rows, strict=True)]


def n_step(rewards, values, discount, terminated=(), cut=(), trace_decay=1.0):
    steps = len(rewards)
    marks = [[float(step in marked) for step in range(steps)] for marked in (terminated, cut)]
    returns, advantages = n_step_targets(
        *columns(*zip(rewards, marks[0], 1 - np.array(marks[1]), strict=True)),
        np.array(values, np.float32)[:, np.newaxis],
        discount,
        trace_decay,
    )
    np.testing.assert_allclose(
        advantages.numpy()[:, 0], returns.numpy()[:, 0] - values[:-1], atol=1e-5
    )
    return returns.numpy()[:, 0].tolist()


def test_an_unfinished_episode_bootstraps_from_the_state_that_follows():
    """R2 = 3 + 0.5*8 = 7, R1 = 2 + 0.5*7 = 5.5, R0 = 1 + 0.5*5.5 = 3.75."""
    assert n_step([1, 2, 3], [0, 0, 0, 8], 0.5) == [3.75, 5.5, 7.0]


def test_nothing_is_earned_after_a_terminal_state():
    """The bootstrap value belongs to the next episode: R1 = 2, R0 = 1 + 0.5*2."""
    assert n_step([1, 2], [0, 0, 100], 0.5, terminated=[1]) == [2.0, 2.0]


def test_a_truncated_episode_bootstraps_from_the_state_where_it_was_cut():
    """Row 2 is that state, of value 6: R1 = 2 + 0.5*6 = 5, R0 = 1 + 0.5*5; R3 = 4 + 0.5*100."""
    returns = n_step([1, 2, 0, 4], [0, 0, 6, 0, 100], 0.5, cut=[2])
    assert returns == [3.5, 5.0, 6.0, 54.0]


def test_a_smaller_trace_decay_trusts_the_values():
    """lambda 0: R_t = r_t + 0.5 * V_{t+1}."""
    assert n_step([1, 2], [10, 20, 40], 0.5, trace_decay=0.0) == [11.0, 22.0]


def random_rollouts(seed, steps=12, count=40):
    """Rewards, terminated, valid, values, log ratios, with ends and cuts in many places."""
    generator = np.random.default_rng(seed)
    rewards = generator.normal(size=(steps, count))
    valid = (generator.random((steps, count)) > 0.15).astype(float)
    terminated = (generator.random((steps, count)) > 0.85) * valid
    values = generator.normal(size=(steps + 1, count)) * 3
    log_ratios = generator.normal(size=(steps, count)) * 0.7
    return [array.astype(np.float32) for array in (rewards, terminated, valid, values, log_ratios)]


def lambda_return(rewards, terminated, valid, values, start, decay):
    """The mean of n-step returns weighed by (1 - lambda) lambda^(n-1); all in float64."""
    if not valid[start]:
        return values[start]
    truncated_returns, collected, factor = [], 0.0, 1.0
    for step in range(start, len(rewards)):
        collected += factor * rewards[step]
        if terminated[step]:
            truncated_returns.append(collected)
            break
        factor *= DISCOUNT
        truncated_returns.append(collected + factor * values[step + 1])
        if step + 1 < len(rewards) and not valid[step + 1]:
            break
    weights = [(1 - decay) * decay**n for n in range(len(truncated_returns) - 1)]
    weights.append(decay ** (len(truncated_returns) - 1))
    return float(np.dot(weights, truncated_returns))


@pytest.mark.parametrize("decay", [1.0, 0.9, 0.3])
def test_returns_are_the_weighted_mean_of_n_step_returns(decay):
    rewards, terminated, valid, values, _ = random_rollouts(3)
    returns, _ = n_step_targets(rewards, terminated, valid, values, DISCOUNT, decay)
    for column in range(rewards.shape[1]):
        arrays = [array[:, column].astype(float) for array in (rewards, terminated, valid, values)]
        expected = [lambda_return(*arrays, start, decay) for start in range(len(rewards))]
        np.testing.assert_allclose(returns.numpy()[:, column], expected, rtol=1e-4, atol=1e-4)


def vtrace_value(rewards, terminated, valid, values, ratios, start, decay, clip_rho, clip_c):
    """Equation (1) of the paper as the sum that it is; an episode's end cuts the sum."""
    if not valid[start]:
        return values[start]
    total, product, factor = 0.0, 1.0, 1.0
    for step in range(start, len(rewards)):
        following = 0.0 if terminated[step] else DISCOUNT * values[step + 1]
        delta = min(clip_rho, ratios[step]) * (rewards[step] + following - values[step])
        total += factor * product * delta
        is_last = step + 1 == len(rewards)
        if terminated[step] or is_last or not valid[step + 1]:
            break
        product *= decay * min(clip_c, ratios[step])
        factor *= DISCOUNT
    return values[start] + total


@pytest.mark.parametrize(
    ("clip_rho", "clip_c", "decay"), [(1.0, 1.0, 1.0), (2.5, 0.8, 1.0), (100.0, 100.0, 0.7)]
)
def test_vtrace_is_the_sum_of_corrected_differences(clip_rho, clip_c, decay):
    rewards, terminated, valid, values, log_ratios = random_rollouts(4)
    found, advantages, weights = vtrace_targets(
        rewards, terminated, valid, values, log_ratios, DISCOUNT, decay, clip_rho, clip_c
    )
    ratios = np.exp(log_ratios.astype(float))
    for column in range(rewards.shape[1]):
        arrays = [a[:, column].astype(float) for a in (rewards, terminated, valid, values)]
        expected = [
            vtrace_value(*arrays, ratios[:, column], start, decay, clip_rho, clip_c)
            for start in range(len(rewards))
        ]
        np.testing.assert_allclose(found.numpy()[:, column], expected, rtol=1e-3, atol=1e-3)
        following = np.append(expected[1:], arrays[3][-1])
        earned = arrays[0] + DISCOUNT * (1 - arrays[1]) * following - arrays[3][:-1]
        corrected = arrays[2] * np.minimum(clip_rho, ratios[:, column]) * earned
        weighted = (weights * advantages).numpy()[:, column]
        np.testing.assert_allclose(weighted, corrected, rtol=1e-3, atol=1e-3)


def test_vtrace_of_the_acting_policy_itself_is_the_n_step_return():
    rewards, terminated, valid, values, _ = random_rollouts(5)
    found, _, _ = vtrace_targets(
        rewards, terminated, valid, values, np.zeros_like(rewards), DISCOUNT, 1.0, 1.0, 1.0
    )
    returns, _ = n_step_targets(rewards, terminated, valid, values, DISCOUNT)
    np.testing.assert_allclose(found, returns, rtol=1e-4, atol=1e-4)


def test_vtrace_by_hand():
    """rho = (1, 0.5): v1 = 2 + 0.5*(3 + 4 - 2) = 4.5; v0 = 1 + (1 + 2 - 1) + 1*(4.5 - 2) = 5.5."""
    values = np.array([[1], [2], [4]], np.float32)
    rewards = np.array([[1], [3]], np.float32)
    ones, zeros = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    log_ratios = np.log(np.array([[8.0], [0.5]], np.float32))
    found, advantages, weights = vtrace_targets(
        rewards, zeros, ones, values, log_ratios, 1.0, 1.0, 1.0, 1.0
    )
    np.testing.assert_allclose(found.numpy()[:, 0], [5.5, 4.5], rtol=1e-6)
    np.testing.assert_allclose(advantages.numpy()[:, 0], [1 + 4.5 - 1, 3 + 4 - 2], rtol=1e-6)
    np.testing.assert_allclose(weights.numpy()[:, 0], [1, 0.5], rtol=1e-6)


def retrace(rewards, values, chosen_values, traces, discount, terminated=()):
    ends = [float(step in terminated) for step in range(len(rewards))]
    rows = columns(*zip(rewards, ends, chosen_values, traces, strict=True))
    after = np.array(values, np.float32)[:, np.newaxis]
    return retrace_targets(rows[0], rows[1], after, rows[2], rows[3], discount).numpy()[:, 0]


def test_retrace_is_the_sum_of_corrected_differences():
    rewards, terminated, valid, values, log_ratios = random_rollouts(6)
    chosen_values = np.random.default_rng(7).normal(size=rewards.shape).astype(np.float32)
    traces = valid * np.minimum(1, np.exp(log_ratios))
    found = retrace_targets(rewards, terminated, values, chosen_values, traces, DISCOUNT)
    for column in range(rewards.shape[1]):
        arrays = (rewards, terminated, values, chosen_values, traces)
        alone = [array[:, column].astype(float) for array in arrays]
        expected = retrace_of(*alone, DISCOUNT)
        np.testing.assert_allclose(found.numpy()[:, column], expected, rtol=1e-4, atol=1e-4)


def test_retrace_by_hand():
    """Q2 = 4 + 0.5*8 = 8; Q1 = 2 + 0.5*(6 + 0.5*(8 - 4)) = 6; Q0 = 1 + 0.5*(2 + 1*(6 - 2)) = 4."""
    found = retrace([1, 2, 4], [100, 2, 6, 8], [100, 2, 4], [1, 1, 0.5], 0.5)
    np.testing.assert_allclose(found, [4, 6, 8], rtol=1e-6)


def test_retrace_without_traces_is_the_target_of_one_step():
    found = retrace([1, 2], [0, 10, 20], [5, 7], [0, 0], 0.5)
    np.testing.assert_allclose(found, [1 + 5, 2 + 10], rtol=1e-6)


def test_retrace_with_whole_traces_of_the_states_values_is_the_n_step_return():
    """Where an action is worth as much as its state, the values of states cancel out."""
    found = retrace([1, 2, 3], [9, 7, 5, 8], [9, 7, 5], [1, 1, 1], 0.5)
    np.testing.assert_allclose(found, [3.75, 5.5, 7.0], rtol=1e-6)


def test_retrace_expects_nothing_after_a_terminal_state():
    found = retrace([1, 2, 3], [0, 50, 60, 70], [5, 50, 7], [1, 1, 1], 0.5, terminated=[1])
    np.testing.assert_allclose(found, [2.0, 2.0, 38.0], rtol=1e-6)


def test_normalized_advantages_leave_out_what_is_no_step():
    advantages = np.array([[1.0, 5.0], [3.0, 1e6]], np.float32)
    valid = np.array([[1, 1], [1, 0]], np.float32)
    found = normalized(advantages, valid).numpy()[valid == 1]
    expected = (np.array([1, 5, 3]) - 3) / np.std([1, 3, 5])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
