"""Worked examples of Memoire's arithmetic, and its rule for how far news reach back."""

import numpy as np
import pytest

from relaax.compat.memoire.returns import EpisodeRows, PriorityScale, ReturnRule, traced_back


def rule(discount, coeff, mix_lambda: float) -> ReturnRule:
    return ReturnRule(np.array(discount, float), np.array(coeff, float), mix_lambda)


def rows(rewards, values) -> EpisodeRows:
    rewards = np.array(rewards, float).reshape(len(rewards), -1)
    values = np.array(values, float).reshape(len(values), -1)
    return EpisodeRows(rewards, values, values.copy(), np.arange(len(values)))


def traced(of: ReturnRule, rewards, values, is_term: bool):
    """The returns of a whole episode that was pushed at once, and the errors of its values."""
    episode = rows(rewards, values)
    assert traced_back(of, episode, len(rewards), is_term, 1e-3) == 0
    return episode.returns, of.errors(episode.returns, episode.values)


def stepwise(of: ReturnRule, rewards, values, is_term: bool):
    """The same, one step after the other, as the design has it."""
    returns = values.copy()
    if is_term:
        returns[-1] = rewards[-1]
    for step in range(len(rewards) - 2, -1, -1):
        following = of.mix_lambda * returns[step + 1] + (1 - of.mix_lambda) * values[step + 1]
        returns[step] = rewards[step] + of.discount_factor * following
    return returns


ONE = rule([0.9], [1.0], 0.5)


@pytest.mark.parametrize(
    ("is_term", "returns", "weights"),
    [
        (True, [1.89325, 1.585, 1.0], [1.502195, 1.363139, 0.993958]),
        (False, [1.7515, 1.27, 0.3], [1.408535, 1.132454, 0.0]),
    ],
)
def test_one_kind_of_reward(is_term: bool, returns, weights) -> None:
    found, errors = traced(ONE, [1, 1, 1], [0.5, 0.4, 0.3], is_term)

    np.testing.assert_allclose(found[:, 0], returns, rtol=1e-12)
    np.testing.assert_allclose(PriorityScale().priorities(errors, 0.6), weights, atol=5e-7)


def test_two_kinds_of_reward() -> None:
    two = rule([0.9, 0.5], [1, 0.5], 1.0)

    found, errors = traced(
        two, [[1, 0], [0, 2], [1, -1]], [[0.5, 0], [0.4, 0.2], [0.3, 0.1]], is_term=True
    )

    np.testing.assert_allclose(found, [[1.81, 0.75], [0.9, 1.5], [1, -1]], rtol=1e-12)
    np.testing.assert_allclose(
        PriorityScale().priorities(errors, 0.6), [1.683716, 1.338837, 0.394424], atol=5e-7
    )


def test_without_lambda_each_step_sees_the_next_value_alone() -> None:
    found, _ = traced(rule([0.9], [1.0], 0.0), [1, 1, 1], [0.5, 0.4, 0.3], is_term=True)

    np.testing.assert_allclose(found[:, 0], [1.36, 1.27, 1.0])


@pytest.mark.parametrize("length", [1, 2, 32, 33, 34, 100])
@pytest.mark.parametrize("is_term", [True, False])
def test_many_steps_at_once_have_the_returns_of_one_after_the_other(length: int, is_term: bool):
    generator = np.random.default_rng(length)
    rewards, values = generator.normal(size=(2, length, 2))
    two = rule([0.9, 1.0], [1, -1], 0.8)

    found, _ = traced(two, rewards, values, is_term)

    np.testing.assert_allclose(found, stepwise(two, rewards, values, is_term), rtol=1e-10)


def test_pushes_in_pieces_lead_to_what_one_push_leads_to() -> None:
    generator = np.random.default_rng(5)
    rewards, values = generator.normal(size=(2, 40, 1))
    whole = stepwise(ONE, rewards, values, is_term=True)

    pieces = values.copy()
    for end in range(8, 41, 8):
        episode = EpisodeRows(rewards, values, pieces, np.arange(end))
        traced_back(ONE, episode, 8, end == 40, 1e-12)

    np.testing.assert_allclose(pieces, whole, atol=1e-9)


@pytest.mark.parametrize("coeff", [1.0, -1.0])
@pytest.mark.parametrize("length", [20, 45])
def test_news_reach_back_until_they_change_little(coeff: float, length: int) -> None:
    few = rule([0.5], [coeff], 1.0)
    episode = rows(np.zeros(length), np.zeros(length))
    episode.rewards[-1] = 1.0

    first = traced_back(few, episode, 1, True, 1e-3)

    # The return of the step k before the last one changes by 0.5**k: below 1e-3 from 10 on.
    last = length - 1
    assert first == last - 9
    assert episode.returns[last - 10] == 0.5**10
    assert episode.returns[last - 11] == 0


def test_steps_that_are_new_are_renewed_however_little_they_change() -> None:
    episode = rows(np.zeros(6), np.zeros(6))

    assert traced_back(ONE, episode, 4, False, 1e-3) == 2


def test_without_an_exponent_all_are_drawn_alike() -> None:
    assert PriorityScale().priorities(np.array([0.0, 1, 5]), 0.0).tolist() == [1, 1, 1]


def test_the_mean_square_moves_with_the_errors() -> None:
    scale = PriorityScale()

    scale.priorities(np.array([2.0, 0.0]), 1.0, rate=0.1)

    assert scale.mean_square == pytest.approx(1 + 0.1 * ((4 - 1) + (0 - 1)))


def test_the_mean_square_never_vanishes() -> None:
    scale = PriorityScale()

    scale.priorities(np.zeros(4), 1.0, rate=0.6)

    assert scale.mean_square == 1e-6
