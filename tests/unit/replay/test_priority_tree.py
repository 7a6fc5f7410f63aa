import numpy as np
import pytest

from relaax.replay.selectors import MOST_CHANGED, PriorityTree


@pytest.mark.parametrize("capacity", [1, 2, 15, 16, 17, 256, 257, 5000])
def test_a_sum_is_found_where_the_running_sum_of_priorities_passes_it(capacity: int) -> None:
    generator = np.random.default_rng(capacity)
    priorities = generator.integers(0, 4, capacity).astype(float)
    priorities[generator.integers(capacity)] = 3
    tree = PriorityTree(capacity)
    tree.set(np.arange(capacity), priorities)

    sums = generator.uniform(0, priorities.sum(), 1000)

    expected = np.searchsorted(priorities.cumsum(), sums, side="right")
    np.testing.assert_array_equal(tree.find(sums), expected)
    assert tree.total == priorities.sum()
    assert tree.least == priorities[priorities > 0].min()


def test_changing_some_priorities_is_as_good_as_setting_all() -> None:
    generator = np.random.default_rng(1)
    priorities = generator.random(1000)
    tree = PriorityTree(1000)
    tree.set(np.arange(1000), priorities)
    for _ in range(50):
        places = generator.choice(1000, 30, replace=False)
        priorities[places] = generator.random(30) * (generator.random(30) < 0.7)
        tree.set(places, priorities[places])

    assert tree.total == pytest.approx(priorities.sum(), rel=1e-12)
    assert tree.least == priorities[priorities > 0].min()
    np.testing.assert_array_equal(tree.priorities(np.arange(1000)), priorities)


def test_a_place_without_priority_is_never_found() -> None:
    tree = PriorityTree(100)
    tree.set(np.array([3, 50]), [0.1, 0.2])

    sums = np.array([0.0, 0.05, 0.1, 0.15, 0.3, np.nextafter(0.3, 1), 1e9])

    assert set(tree.find(sums).tolist()) == {3, 50}


@pytest.mark.parametrize("changes", [1, MOST_CHANGED, MOST_CHANGED + 1])
def test_a_priority_counts_as_it_was_set_last(changes: int) -> None:
    tree = PriorityTree(40)
    for change in range(changes):
        tree.set(np.array([change % 40]), [1.0 + change % 7])
    tree.set(np.zeros(0, np.int64), [])
    tree.set(np.arange(40), np.arange(40.0))

    assert tree.total == 780
    assert tree.least == 1
    np.testing.assert_array_equal(tree.find(np.array([0.0, 1.0, 779.0])), [1, 2, 39])


def test_an_empty_tree_has_no_least_priority() -> None:
    tree = PriorityTree(10)

    assert tree.total == 0
    assert tree.least == np.inf


def test_rounding_errors_do_not_gather() -> None:
    tree = PriorityTree(64)
    places = np.arange(64)
    for scale in (1e12, 1.0):
        tree.set(places, np.full(64, scale))

    assert tree.total == 64
