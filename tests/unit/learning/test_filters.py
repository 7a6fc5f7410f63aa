"""Z-filters: what workers gather is merged at the parameter server, and all filter alike."""

import numpy as np
import pytest
from learning_parts import Recorder

from relaax.algorithm_base import NullMetrics, Version
from relaax.learning.filters import FilteredBridge, MergingOptimizer, ZFilter, initial_statistics
from relaax.learning.filters.statistics import MOST_ROWS, merge, statistics_of
from relaax.learning.optimizers import RMSProp, RMSPropSettings
from relaax.learning.parameter_service import ParameterService
from relaax.learning.parameter_store import ParameterStore

NETWORK = np.arange(5, dtype=np.float32)


def rows(count, seed=0, mean=(100.0, -3.0), deviation=(5.0, 0.1)):
    return np.random.default_rng(seed).normal(mean, deviation, (count, 2))


def rewards_of(count):
    return np.random.default_rng(1).normal(1.0, 2.0, (count, 1))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 999), (500, 500), (3, 1, 7, 989)])
def test_merged_statistics_are_those_of_all_rows(sizes):
    everything = rows(sum(sizes))
    merged = initial_statistics(2)
    for part in np.split(everything, np.cumsum(sizes)[:-1]):
        merge(merged, statistics_of(part))
    assert merged[0] == len(everything)
    np.testing.assert_allclose(merged[1:3], everything.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(merged[3:], everything.var(axis=0), rtol=1e-3)


def test_many_merges_in_float32_stay_exact_to_a_thousandth():
    merged, part = initial_statistics(2), statistics_of(rows(256))
    for _ in range(20_000):
        merge(merged, part)
    np.testing.assert_allclose(merged[1:], part[1:], rtol=1e-3)


def test_old_rows_are_forgotten_when_there_are_very_many():
    merged, part = initial_statistics(2), statistics_of(rows(1000))
    part[0] = MOST_ROWS
    merge(merged, part)
    merge(merged, part)
    assert merged[0] == MOST_ROWS


def test_nothing_gathered_changes_nothing():
    merged = statistics_of(rows(10)).astype(np.float32)
    before = merged.copy()
    merge(merged, initial_statistics(2))
    np.testing.assert_array_equal(merged, before)


def test_filtered_rows_have_mean_zero_and_deviation_one():
    z_filter, everything = ZFilter(2), rows(2000)
    z_filter.use(statistics_of(everything).astype(np.float32))
    filtered = z_filter.filtered(everything)
    assert filtered.dtype == np.float32
    np.testing.assert_allclose(filtered.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(filtered.std(axis=0), 1, atol=1e-3)


def size_of(rewards):
    return np.sqrt(np.mean(np.square(rewards)))


def test_rewards_are_scaled_alone():
    z_filter, rewards = ZFilter(1, subtracts_mean=False), rewards_of(2000)
    z_filter.use(statistics_of(rewards).astype(np.float32))
    np.testing.assert_allclose(z_filter.filtered(rewards), rewards / size_of(rewards), rtol=1e-4)


@pytest.mark.parametrize("reward", [1.0, -1.0, 1e-3, 500.0])
def test_a_reward_that_never_varies_becomes_one(reward):
    z_filter, rewards = ZFilter(1, subtracts_mean=False), np.full((100, 1), reward)
    z_filter.use(statistics_of(rewards).astype(np.float32))
    np.testing.assert_allclose(z_filter.filtered(rewards), np.sign(rewards), rtol=1e-4)


def test_a_number_that_never_varies_and_one_far_away_stay_within_the_limits():
    z_filter = ZFilter(2)
    z_filter.use(np.array([1000, 1, 1, 0, 1], np.float32))
    filtered = z_filter.filtered(np.array([[1.0, 1e9], [1.0001, -1e9]]))
    np.testing.assert_allclose(filtered, [[0, 10], [1, -10]], atol=1e-2)


#: The largest numbers that a client can send.
LARGEST = float(np.finfo(np.float32).max)
HUGE = [1e20, -1e20, LARGEST, -LARGEST]


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("subtracts_mean", [False, True])
def test_what_is_gathered_of_huge_numbers_can_be_merged_however_often(huge, kind, subtracts_mean):
    z_filter, merged = ZFilter(2, subtracts_mean), initial_statistics(2)
    for _ in range(50):
        z_filter.filtered(rows(30).astype(kind))
        z_filter.filtered(np.full((2, 2), huge, kind))
        filtered = z_filter.filtered(np.full((2, 2), -huge, kind))
        assert np.abs(filtered).max() <= 10
        taken = z_filter.take()
        assert np.isfinite(taken).all()
        merge(merged, taken)
        z_filter.use(merged)
    assert np.isfinite(merged).all()
    assert merged[0] == 50 * 34


def test_a_huge_number_moves_the_statistics_by_no_more_than_the_limits_do():
    z_filter, usual = ZFilter(2), statistics_of(rows(1000))
    z_filter.use(usual.astype(np.float32))
    z_filter.filtered(np.full((1, 2), 1e20))
    mean, deviation = usual[1:3], np.sqrt(usual[3:])
    np.testing.assert_allclose(z_filter.take()[1:3], mean + 1e3 * deviation, rtol=1e-3)


def test_numbers_beyond_the_first_limit_are_filtered_after_some_updates():
    """What all numbers were taken for at first was nearer than they are."""
    z_filter, merged = ZFilter(1), initial_statistics(1)
    everything = np.random.default_rng(0).normal(1e8, 1e7, (100, 1))
    for _ in range(2000):
        z_filter.filtered(everything)
        merge(merged, z_filter.take())
        z_filter.use(merged)
    filtered = z_filter.filtered(everything)
    assert abs(filtered.mean()) < 0.2
    assert 0.5 < filtered.std() < 2


@pytest.mark.parametrize(
    ("position", "wrong"), [(1, np.nan), (1, np.inf), (3, np.inf), (0, np.inf), (1, 1e20)]
)
def test_what_would_not_be_finite_is_not_merged(position, wrong):
    """The square of 1e20 is not finite in float32."""
    merged = statistics_of(rows(10)).astype(np.float32)
    before, added = merged.copy(), initial_statistics(2)
    added[0] = 10
    added[position] = wrong
    merge(merged, added)
    np.testing.assert_array_equal(merged, before)


class Training:
    """A parameter server with statistics behind its parameters, and workers with a filter each."""

    def __init__(self, workers):
        self.store = self.new_store()
        self.recorder = Recorder(ParameterService(self.store, NullMetrics()))
        self.filters = [(ZFilter(2), ZFilter(1, subtracts_mean=False)) for _ in range(workers)]
        self.bridges = [FilteredBridge(self.recorder, filters) for filters in self.filters]

    @staticmethod
    def new_store():
        optimizer = MergingOptimizer(RMSProp(NETWORK.size, RMSPropSettings()), widths=(2, 1))
        initial = [NETWORK, initial_statistics(2), initial_statistics(1)]
        return ParameterStore(np.concatenate(initial), optimizer, lambda global_t: 0.1)

    def update(self, worker, states, rewards):
        states_filter, rewards_filter = self.filters[worker]
        states_filter.filtered(states)
        rewards_filter.filtered(rewards)
        return self.bridges[worker].apply(
            np.ones(NETWORK.size, np.float32), len(states), Version(0)
        )


def test_all_workers_filter_by_what_all_have_seen():
    training, everything, rewards = Training(2), rows(300), rewards_of(300)
    training.update(0, everything[:100], rewards[:100])
    training.update(1, everything[100:], rewards[100:])
    training.bridges[0].get()
    expected = (everything - everything.mean(axis=0)) / everything.std(axis=0)
    for states_filter, rewards_filter in training.filters:
        np.testing.assert_allclose(states_filter.filtered(everything), expected, atol=1e-3)
        scaled = rewards / size_of(rewards)
        np.testing.assert_allclose(rewards_filter.filtered(rewards), scaled, atol=1e-3)


def test_what_was_gathered_is_sent_once():
    training = Training(1)
    training.update(0, rows(100), rewards_of(100))
    training.bridges[0].apply(np.ones(NETWORK.size, np.float32), 0, Version(0))
    assert training.store.read()[0][NETWORK.size] == 100


def test_the_network_sees_its_own_parameters_alone():
    training = Training(1)
    values = training.update(0, rows(10), rewards_of(10))
    assert values.vector.shape == NETWORK.shape
    alone = ParameterStore(NETWORK, RMSProp(NETWORK.size, RMSPropSettings()), lambda _: 0.1)
    alone.apply(np.ones(NETWORK.size, np.float32), 10)
    np.testing.assert_array_equal(values.vector, alone.read()[0])


def test_a_restored_training_filters_as_before():
    training, everything = Training(1), rows(300)
    training.update(0, everything, rewards_of(300))
    again = Training(1)
    again.store.restore(training.store.snapshot())
    again.bridges[0].get()
    for before, after in zip(training.filters[0], again.filters[0], strict=True):
        probe = everything[:, : before.width]
        np.testing.assert_array_equal(before.filtered(probe), after.filtered(probe))
