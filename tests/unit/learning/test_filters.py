"""Z-filters: what workers gather is merged at the parameter server, and all filter alike."""

import numpy as np
import pytest
from learning_parts import Recorder

from relaax.algorithm_base import Gradient, NullMetrics, Statistics, Version
from relaax.learning.filters import Filters, ZFilter, initial_statistics
from relaax.learning.filters.statistics import (
    MOST_ROWS,
    initial_moments,
    merge,
    merge_moments,
    moments_of,
    packed,
    statistics_of,
    unpacked,
)
from relaax.observations import UNNAMED
from relaax.parameters.optimizers import RMSProp, RMSPropSettings
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore

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
    moments = unpacked(merged)
    assert moments[0] == len(everything)
    np.testing.assert_allclose(moments[1:3], everything.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments[3:], everything.std(axis=0), rtol=1e-12)


def test_many_merges_of_a_position_far_away_stay_exact():
    merged, part = initial_statistics(2), statistics_of(rows(256, mean=(5.4e6, -1.8e9)))
    for _ in range(20_000):
        merge(merged, part)
    np.testing.assert_allclose(unpacked(merged)[1:], unpacked(part)[1:], rtol=1e-9)


#: What simulators report: positions in metres, times in seconds, milliseconds and nanoseconds since
#: 1970, counts, and the units of small things.
UNITS = [
    (5.4e6, 0.3), (1.8e9, 1.0), (1.8e12, 500.0), (1.8e18, 1e9), (-3e10, 2.0), (0.0, 1e-6),
    (2e-6, 1e-6), (0.0, 1e-30), (0.0, 1e30), (1e12, 1e10),
]  # fmt: skip


@pytest.mark.parametrize(("mean", "deviation"), UNITS)
@pytest.mark.parametrize("workers", [1, 3])
def test_whatever_the_offset_and_the_unit_filtered_numbers_have_deviation_one(
    mean, deviation, workers
):
    random = np.random.default_rng(0)
    filters, merged = [ZFilter(1) for _ in range(workers)], initial_statistics(1)
    seen = []
    for _ in range(200):
        for each in filters:
            some = random.normal(mean, deviation, (5, 1))
            seen.append(some)
            each.filtered(some)
            merge(merged, each.take())
        for each in filters:
            each.use(merged)
    everything = np.concatenate(seen)
    expected = (everything - everything.mean()) / everything.std()
    np.testing.assert_allclose(filters[0].scaled(everything), expected, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rewards_are_of_the_size_of_one_whatever_their_unit(unit):
    z_filter, rewards = ZFilter(1, subtracts_mean=False), rewards_of(500) * unit
    z_filter.filtered(rewards)
    z_filter.use(z_filter.take())
    np.testing.assert_allclose(z_filter.filtered(rewards), rewards / size_of(rewards), rtol=1e-5)


def test_old_rows_are_forgotten_when_there_are_very_many():
    merged, part = initial_moments(2), moments_of(rows(1000))
    part[0] = MOST_ROWS
    merge_moments(merged, part)
    merge_moments(merged, part)
    assert merged[0] == MOST_ROWS


def test_nothing_gathered_changes_nothing():
    merged = statistics_of(rows(10))
    before = merged.copy()
    merge(merged, initial_statistics(2))
    np.testing.assert_array_equal(merged, before)


def test_filtered_rows_have_mean_zero_and_deviation_one():
    z_filter, everything = ZFilter(2), rows(2000)
    z_filter.use(statistics_of(everything))
    filtered = z_filter.filtered(everything)
    assert filtered.dtype == np.float32
    np.testing.assert_allclose(filtered.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(filtered.std(axis=0), 1, atol=1e-3)


def size_of(rewards):
    return np.sqrt(np.mean(np.square(rewards)))


def test_rewards_are_scaled_alone():
    z_filter, rewards = ZFilter(1, subtracts_mean=False), rewards_of(2000)
    z_filter.use(statistics_of(rewards))
    np.testing.assert_allclose(z_filter.filtered(rewards), rewards / size_of(rewards), rtol=1e-4)


@pytest.mark.parametrize("reward", [1.0, -1.0, 1e-3, 500.0])
def test_a_reward_that_never_varies_becomes_one(reward):
    z_filter, rewards = ZFilter(1, subtracts_mean=False), np.full((100, 1), reward)
    z_filter.use(statistics_of(rewards))
    np.testing.assert_allclose(z_filter.filtered(rewards), np.sign(rewards), rtol=1e-4)


def test_a_number_that_never_varies_and_one_far_away_stay_within_the_limits():
    z_filter = ZFilter(2)
    z_filter.use(packed(np.array([1000.0, 2, 1, 0, 1])))
    filtered = z_filter.filtered(np.array([[2.0, 1e9], [3.0, -1e9]]))
    np.testing.assert_allclose(filtered, [[0, 10], [0.5, -10]], atol=1e-2)


@pytest.mark.parametrize("constant", [0.0, 0.1, 5.4e6 + 1 / 3])
def test_a_constant_has_no_deviation_however_often_it_is_seen(constant):
    z_filter, merged = ZFilter(1), initial_statistics(1)
    for _ in range(300):
        z_filter.filtered(np.full((37, 1), constant))
        merge(merged, z_filter.take())
        z_filter.use(merged)
    assert unpacked(merged)[2] == 0
    assert np.abs(z_filter.filtered(np.full((5, 1), constant))).max() < 1e-7
    np.testing.assert_allclose(z_filter.filtered(np.array([[constant + 1]])), 1 / (constant or 1))


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


@pytest.mark.parametrize("wrong", HUGE)
@pytest.mark.parametrize("position", [0, 3])
def test_one_wrong_number_among_the_first_rows_counts_as_a_nearer_one(wrong, position):
    z_filter, first = ZFilter(2), rows(20)
    usual = np.delete(first, position, axis=0)
    first[position] = wrong
    z_filter.filtered(first)
    center = unpacked(z_filter.take())[1:3]
    farthest = 1e3 * np.abs(np.median(first, axis=0))
    assert (np.abs(center - usual.mean(axis=0)) <= 1.1 * farthest / 20).all()


def test_too_few_first_rows_wait_for_others():
    z_filter = ZFilter(2)
    z_filter.filtered(rows(4))
    assert not z_filter.take().any()
    z_filter.filtered(rows(1))
    assert z_filter.take()[0] == 5


def test_a_huge_number_moves_the_statistics_by_no_more_than_the_limits_do():
    z_filter, usual = ZFilter(2), statistics_of(rows(1000))
    z_filter.use(usual)
    z_filter.filtered(np.full((1, 2), 1e20))
    mean, deviation = np.split(unpacked(usual)[1:], 2)
    found = unpacked(z_filter.take())[1:3]
    np.testing.assert_allclose(found, mean + 1e3 * deviation, rtol=1e-6)


@pytest.mark.parametrize(
    ("position", "wrong"), [(1, np.nan), (1, np.inf), (3, np.inf), (0, np.inf), (6, np.nan)]
)
def test_what_is_not_finite_is_not_merged(position, wrong):
    merged = statistics_of(rows(10))
    before, added = merged.copy(), initial_statistics(2)
    added[0] = 10
    added[position] = wrong
    merge(merged, added)
    np.testing.assert_array_equal(merged, before)


def new_filters():
    return Filters({UNNAMED: 2}, rewards=True)


def both(filters):
    """The filter of states and the one of rewards."""
    return filters.states[UNNAMED], filters.rewards


class Training:
    """A parameter server with statistics behind its parameters, and workers with a filter each."""

    def __init__(self, workers):
        self.store = self.new_store()
        self.recorder = Recorder(ParameterService(self.store, NullMetrics()))
        self.filters = [new_filters() for _ in range(workers)]
        self.bridges = [filters.bridged(self.recorder) for filters in self.filters]

    @staticmethod
    def new_store():
        optimizer, filters = RMSProp(NETWORK.size, RMSPropSettings()), new_filters()
        initial = np.concatenate([NETWORK, *filters.initial()])
        return ParameterStore(initial, optimizer, lambda global_t: 0.1, filters)

    def update(self, worker, states, rewards):
        states_filter, rewards_filter = both(self.filters[worker])
        states_filter.filtered(states)
        rewards_filter.filtered(rewards)
        gradient = Gradient(np.ones(NETWORK.size, np.float32), Version(0), len(states))
        return self.bridges[worker].push(gradient)


def test_all_workers_filter_by_what_all_have_seen():
    training, everything, rewards = Training(2), rows(300), rewards_of(300)
    training.update(0, everything[:100], rewards[:100])
    training.update(1, everything[100:], rewards[100:])
    training.bridges[0].pull()
    expected = (everything - everything.mean(axis=0)) / everything.std(axis=0)
    for states_filter, rewards_filter in map(both, training.filters):
        np.testing.assert_allclose(states_filter.filtered(everything), expected, atol=1e-3)
        scaled = rewards / size_of(rewards)
        np.testing.assert_allclose(rewards_filter.filtered(rewards), scaled, atol=1e-3)


def test_what_was_gathered_is_sent_once():
    training = Training(1)
    training.update(0, rows(100), rewards_of(100))
    training.bridges[0].push(Gradient(np.ones(NETWORK.size, np.float32), Version(0)))
    assert training.store.pull().vector[NETWORK.size] == 100


def test_statistics_may_come_without_a_gradient():
    training, gathered = Training(1), ZFilter(2)
    gathered.filtered(rows(100))
    both_of = np.concatenate([gathered.take(), initial_statistics(1)])
    values = training.recorder.service.push(Statistics(both_of))
    assert values.version.number == 1
    np.testing.assert_array_equal(values.vector[: NETWORK.size], NETWORK)
    assert values.vector[NETWORK.size] == 100


@pytest.mark.parametrize(
    ("statistics", "reason"),
    [(np.zeros(3), r"has shape \(3,\), the statistics"), (np.full(16, np.nan), "is not finite")],
)
def test_statistics_that_do_not_fit_are_refused_with_their_gradient(statistics, reason):
    training = Training(1)
    update = Gradient(np.ones(NETWORK.size, np.float32), Version(0), 5, [Statistics(statistics)])
    with pytest.raises(ValueError, match=reason):
        training.store.apply(update.vector, update.steps, None, update.statistics)
    assert (training.store.version, training.store.global_t) == (0, 0)


def test_the_network_sees_its_own_parameters_alone():
    training = Training(1)
    values = training.update(0, rows(10), rewards_of(10))
    assert values.vector.shape == NETWORK.shape
    alone = ParameterStore(NETWORK, RMSProp(NETWORK.size, RMSPropSettings()), lambda _: 0.1)
    alone.apply(np.ones(NETWORK.size, np.float32), 10)
    np.testing.assert_array_equal(values.vector, alone.pull().vector)


def test_a_restored_training_filters_as_before():
    training, everything = Training(1), rows(300)
    training.update(0, everything, rewards_of(300))
    again = Training(1)
    again.store.restore(training.store.snapshot())
    again.bridges[0].pull()
    for before, after in zip(both(training.filters[0]), both(again.filters[0]), strict=True):
        probe = everything[:, : before.width]
        np.testing.assert_array_equal(before.filtered(probe), after.filtered(probe))
