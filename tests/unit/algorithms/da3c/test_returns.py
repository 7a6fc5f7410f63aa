"""N-step returns against hand-worked cases and an independent computation."""

import numpy as np
import pytest


@pytest.fixture(name="returns_of")
def _returns_of(da3c_module):
    n_step_returns = da3c_module("returns").n_step_returns

    def compute(rewards, bootstrap, discount, terminated=(), truncated=None):
        """``terminated`` lists steps; ``truncated`` maps steps to values."""
        truncated = truncated or {}
        steps = range(len(rewards))
        return n_step_returns(
            np.array(rewards, np.float32),
            np.array([step in terminated for step in steps]),
            np.array([step in truncated for step in steps]),
            np.array([truncated.get(step, 0.0) for step in steps], np.float32),
            bootstrap,
            discount,
        )

    return compute


def test_an_unfinished_episode_bootstraps_from_the_state_that_follows(returns_of):
    """R2 = 3 + 0.5*8 = 7, R1 = 2 + 0.5*7 = 5.5, R0 = 1 + 0.5*5.5 = 3.75."""
    assert returns_of([1, 2, 3], 8.0, 0.5).tolist() == [3.75, 5.5, 7.0]


def test_nothing_is_earned_after_a_terminal_state(returns_of):
    """The bootstrap value belongs to the next episode: R1 = 2, R0 = 1 + 0.5*2."""
    assert returns_of([1, 2], 100.0, 0.5, terminated=[1]).tolist() == [2.0, 2.0]


def test_a_truncated_episode_bootstraps_from_the_state_where_it_was_cut(returns_of):
    """R1 = 2 + 0.5*6 = 5, whatever comes after; R0 = 1 + 0.5*5."""
    assert returns_of([1, 2], 100.0, 0.5, truncated={1: 6.0}).tolist() == [3.5, 5.0]


def test_episodes_inside_one_rollout_do_not_leak_into_each_other(returns_of):
    """R3 = 4 + 0.5*2 = 5; R2 = 3 + 0.5*10 = 8 (cut); R1 = 2 (terminal); R0 = 1 + 0.5*2 = 2."""
    returns = returns_of([1, 2, 3, 4], 2.0, 0.5, terminated=[1], truncated={2: 10.0})
    assert returns.tolist() == [2.0, 2.0, 8.0, 5.0]


def test_returns_are_discounted_sums(returns_of):
    """Written out as sum_k discount**k r_{t+k} + discount**n V, in float64."""
    generator = np.random.default_rng(3)
    rewards = generator.normal(size=20)
    returns = returns_of(rewards, 1.7, 0.99)
    for step in range(20):
        powers = 0.99 ** np.arange(20 - step)
        expected = powers @ rewards[step:] + 0.99 ** (20 - step) * 1.7
        assert returns[step] == pytest.approx(expected, rel=1e-5, abs=1e-5)
