"""Actions are chosen by filtered states, and the states stay as they were."""

import numpy as np
import pytest

from relaax.learning.filters import FilteringModel, ZFilter, scaled_states
from relaax.learning.filters.statistics import statistics_of
from relaax.learning.model import Choice
from relaax.observations import UNNAMED

ROWS = np.random.default_rng(0).normal(100.0, 5.0, (200, 2)).astype(np.float32)


def in_use():
    z_filter = ZFilter(2)
    z_filter.use(statistics_of(ROWS))
    return z_filter


class Seeing:
    """A model that keeps what it is shown."""

    def batch_size(self, count):
        return 2 * count

    def choose(self, parameters, observations, recurrent_state, noise):
        self.seen = observations
        return Choice(noise, {}, recurrent_state)


def test_a_model_sees_filtered_states_and_what_is_recorded_stays():
    inner, rows = Seeing(), ROWS.copy()
    model = FilteringModel(inner, {UNNAMED: in_use()})
    assert model.batch_size(3) == 6
    model.choose(None, rows, np.zeros((2, 200, 0)), np.zeros(200))
    np.testing.assert_allclose(inner.seen.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_array_equal(rows, ROWS)


def test_of_named_observations_those_without_a_filter_are_left_alone():
    image = np.zeros((200, 4, 4), np.uint8)
    found = scaled_states({"speed": in_use()}, {"speed": ROWS, "camera": image})
    assert found["camera"] is image
    np.testing.assert_allclose(found["speed"].std(axis=0), 1, rtol=1e-3)


def test_of_stacked_states_each_is_filtered_by_itself():
    stacked = np.concatenate([ROWS, ROWS[::-1]], axis=1)
    found = scaled_states({UNNAMED: in_use()}, stacked)
    alone = scaled_states({UNNAMED: in_use()}, ROWS)
    np.testing.assert_array_equal(found, np.concatenate([alone, alone[::-1]], axis=1))


@pytest.mark.parametrize("gathers", [True, False])
def test_filtering_alone_gathers_nothing(gathers):
    one, other = in_use(), in_use()
    filtered = one.filtered(ROWS)
    np.testing.assert_array_equal(other.scaled(ROWS), filtered)
    if gathers:
        other.gather(ROWS)
        np.testing.assert_array_equal(other.take(), one.take())
    else:
        assert other.take()[0] == 0
