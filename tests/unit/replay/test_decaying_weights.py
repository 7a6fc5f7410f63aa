"""Draws whose weights fall are those that are made one after the other."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from relaax.replay.selectors import Prioritized


def weighed(weights, decay: float, generator) -> Prioritized:
    made = Prioritized(4, 1.0, generator)
    made.decay = decay
    made.set_weights(np.arange(len(weights)), np.array(weights))
    return made


def sequences(weights, count: int, decay: float):
    """Every sequence of ``count`` draws, and its probability."""
    if count == 0:
        yield (), 1.0
        return
    for place, weight in enumerate(weights):
        left = [*weights]
        left[place] *= decay
        for rest, probability in sequences(left, count - 1, decay):
            yield (place, *rest), weight / sum(weights) * probability


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_sequences_are_as_probable_as_those_of_single_draws(decay: float):
    weights = [1.0, 2.0, 0.5]
    generator = np.random.default_rng(7)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(1500):
        drawn = weighed(weights, decay, generator).draw(3)
        found[tuple(drawn.rows.tolist())] += 1
    expected = {draws: chance for draws, chance in sequences(weights, 3, decay) if chance > 0}
    assert set(found) <= set(expected)
    counts = [found[draws] for draws in expected]
    assert stats.chisquare(counts, np.array([*expected.values()]) * 1500).pvalue > 1e-3


def test_the_weight_of_a_draw_is_the_one_by_which_it_was_drawn():
    selector = weighed([0.0, 0.0, 8.0], 0.5, np.random.default_rng(1))

    drawn = selector.draw(3)

    assert drawn.rows.tolist() == [2, 2, 2]
    assert (drawn.probabilities * 8).tolist() == [8, 4, 2]
    assert selector.weight == 1


def test_there_are_fewer_draws_where_nothing_is_left():
    selector = weighed([1.0, 3.0], 0.0, np.random.default_rng(1))

    assert sorted(selector.draw(5).rows.tolist()) == [0, 1]
    assert len(selector) == 0
