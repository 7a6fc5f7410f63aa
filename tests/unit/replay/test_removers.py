"""Which items leave a table that would have too many, and that they leave nothing behind."""

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.errors import ConfigurationError
from relaax.replay.limiter import Limiter
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions


class Case:
    """A replay whose table ``all`` has single steps, of which the first is number 0."""

    def __init__(self, remover, selector="prioritized", **limits):
        table = TableSpec(Transitions(), selector, Limiter(**limits), alpha=1.0, remover=remover)
        self.replay = ReplaySpec(SCHEMA, 1024, {"all": table}).make(np.random.default_rng(3), 60.0)
        self.replay.open_writer("w", SCHEMA)
        self.count = 0

    def append(self, count):
        rows, flags = steps(self.count, count, start=self.count == 0, end=0)
        self.replay.append("w", 0, self.count, rows, flags)
        self.count += count

    def numbers(self):
        """The numbers of the steps that are items: each is drawn, sooner or later."""
        sample = self.replay.sample("all", 2000, 0.0)
        return sorted(set(sample.columns["action"].tolist()))

    def prioritize(self, priorities):
        sample = self.replay.sample("all", 2000, 0.0)
        keys, places = np.unique(sample.keys, return_index=True)
        numbers = sample.columns["action"][places]
        self.replay.update_priorities("all", keys, np.array([priorities[n] for n in numbers]))


@pytest.mark.parametrize("selector", ["uniform", "prioritized"])
def test_the_oldest_leave_first(selector):
    case = Case("fifo", selector, max_items=20)
    case.append(51)  # the last one waits for what follows it
    assert case.numbers() == list(range(30, 50))
    assert case.replay.stats()["all/removed"] == 30


def test_a_queue_loses_the_items_at_its_head():
    case = Case("fifo", "fifo", max_items=4)
    case.append(11)
    drawn = case.replay.sample("all", 4, 0.0).columns["action"]
    assert drawn.tolist() == [6, 7, 8, 9]


def test_the_lowest_priorities_leave_first_and_0_before_all():
    case = Case("lowest_priority", max_items=10)
    case.append(11)
    case.prioritize({n: 0.0 if n == 4 else abs(n - 6.5) for n in range(10)})
    case.append(3)
    # Of ten items 4 had 0, and 6 and 7 the least behind it; 10, 11 and 12 are new.
    assert case.numbers() == [0, 1, 2, 3, 5, 8, 9, 10, 11, 12]


def test_of_equal_priorities_the_oldest_leave_first():
    case = Case("lowest_priority", max_items=640)
    case.append(642)
    assert case.numbers() == list(range(11, 641))


def test_the_lowest_leave_before_equal_ones_that_are_older():
    case = Case("lowest_priority", max_items=10)
    case.append(11)
    case.prioritize({n: 1.0 if n in (2, 5) else 2.0 for n in range(10)})
    case.append(4)
    assert case.numbers() == [3, 4, 6, 7, 8, 9, 10, 11, 12, 13]


def test_where_rows_are_used_again_the_oldest_are_not_those_of_the_lowest_rows():
    case = Case("lowest_priority", max_items=640)
    case.append(900)
    case.append(500)  # the first rows of 1024 have the newest steps
    numbers = case.numbers()
    assert numbers == list(range(numbers[0], 1399))


def test_a_large_table_makes_more_room_at_once_but_keeps_enough_items_for_draws():
    case = Case("fifo", "uniform", max_items=640)
    case.append(642)
    assert case.replay.table_sizes() == {"all": 630}
    case = Case("fifo", "uniform", min_items=640, max_items=640)
    case.append(642)
    assert case.replay.table_sizes() == {"all": 640}


def test_removed_items_are_not_drawn_after_a_restart_either():
    case = Case("fifo", "uniform", max_items=20)
    case.append(51)
    contents, again = case.replay.contents(), Case("fifo", "uniform", max_items=20)
    again.replay.restore(contents)
    again.replay.open_writer("w", SCHEMA)
    again.count = 51
    assert again.numbers() == case.numbers()
    again.append(5)
    assert again.numbers() == list(range(35, 55))


def test_a_remover_needs_a_limit_and_priorities():
    with pytest.raises(ConfigurationError, match="remover fifo needs max_items"):
        Case("fifo")
    with pytest.raises(ConfigurationError, match="lowest_priority needs the selector prioritized"):
        Case("lowest_priority", "uniform", max_items=5)
