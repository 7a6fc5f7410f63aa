"""What workers count is added up across processes, and outlives them."""

import numpy as np
import pytest
from clock import Clock

from relaax.server.rlx_server.children import Watchdog
from relaax.server.rlx_server.tally import (
    CONNECTIONS,
    ENVIRONMENTS,
    HISTOGRAMS,
    LOST,
    MOST_WORKERS,
    STEPS,
    WIDTH,
    Cell,
    Tally,
)
from relaax.telemetry.histograms import SECONDS
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN


@pytest.fixture(name="tally")
def _tally():
    return Tally()


def histogram(tally, name):
    """Return the counts by bound, and the sum."""
    place = HISTOGRAMS[name]
    total, *counts = tally.totals()[place.begin : place.end].tolist()
    return counts, total


def test_all_workers_are_added_up(tally):
    for number in range(3):
        row = tally.row(tally.take())
        row.add(STEPS, 10 + number)
        row[CONNECTIONS], row[ENVIRONMENTS] = 2, 5
    totals = tally.totals()
    assert totals[STEPS] == 33
    assert totals[CONNECTIONS] == 6
    assert totals[ENVIRONMENTS] == 15


def test_undelivered_steps_of_an_ended_worker_are_lost_and_the_next_one_counts_on():
    tally = Tally(deliver=True)
    for _ in range(2):
        number = tally.take()
        row = tally.row(number)
        row.kept.add(TAKEN, 10)
        row.kept.add(DELIVERED, 6)
        row.kept.add(DROPPED, 1)
        tally.give_back(number)
    assert tally.kept.totals() == {TAKEN: 20, DELIVERED: 12, DROPPED: 2, LOST: 6}


def test_workers_that_learn_themselves_lose_nothing_that_should_be_delivered(tally):
    number = tally.take()
    tally.row(number).kept.add(TAKEN, 10)
    tally.give_back(number)
    assert tally.kept.totals()[LOST] == 0


def test_a_histogram_agrees_with_numpy(tally):
    values = np.random.default_rng(1).lognormal(-6, 2, 500)
    rows = [tally.row(tally.take()) for _ in range(2)]
    for index, value in enumerate(values):
        rows[index % 2].latency.add(value, times=1 + index % 3)
    times = 1 + np.arange(500) % 3
    expected, _ = np.histogram(
        values, [-np.inf, *np.nextafter(SECONDS, np.inf), np.inf], weights=times
    )
    counts, total = histogram(tally, "latency")
    assert counts == expected.tolist()
    assert total == pytest.approx((values * times).sum())


def test_the_counts_of_a_worker_stay_when_it_ends_and_its_load_does_not(tally):
    number = tally.take()
    row = tally.row(number)
    row.add(STEPS, 7)
    row.batch_size.add(3)
    row[CONNECTIONS] = row[ENVIRONMENTS] = 1
    tally.give_back(number)
    assert tally.totals()[[STEPS, CONNECTIONS, ENVIRONMENTS]].tolist() == [7, 0, 0]
    again = tally.take()
    assert again == number
    tally.row(again).add(STEPS)
    assert tally.totals()[STEPS] == 8
    assert histogram(tally, "batch_size") == ([0, 0, 1] + [0] * 9, 3)


def test_more_workers_than_there_are_rows_are_served_and_not_counted(tally):
    numbers = [tally.take() for _ in range(MOST_WORKERS)]
    assert len(set(numbers)) == MOST_WORKERS
    assert tally.take() is None
    tally.row(None).add(STEPS)
    tally.give_back(None)
    assert tally.turn_began(None) == 0
    assert tally.totals().tolist() == [0] * WIDTH
    tally.give_back(numbers[5])
    assert tally.take() == numbers[5]


class PassingClock(Clock):
    def pass_by(self, watchdog, seconds):
        """Let time pass while the watchdog looks once a second, as the server does."""
        for _ in range(seconds):
            self.now += 1
            watchdog.hung({})


def test_a_worker_hangs_whose_turn_lasts_too_long(tally):
    clock = PassingClock(1000.0)
    watchdog = Watchdog(tally.state, 60.0, clock)
    turns = {1: clock.now, 2: 0.0, 3: clock.now + 30}
    clock.pass_by(watchdog, 60)
    assert watchdog.hung(turns) == []
    clock.pass_by(watchdog, 1)
    assert watchdog.hung(turns) == [1]


def test_a_worker_that_waits_for_the_parameter_server_does_not_hang(tally):
    clock = PassingClock(1000.0)
    watchdog = Watchdog(tally.state, 60.0, clock)
    turns = {1: clock.now}
    clock.pass_by(watchdog, 100)
    tally.state[Cell.PARAMETER_SERVER_WAS_AWAY] = clock.now
    clock.pass_by(watchdog, 60)
    assert watchdog.hung(turns) == []
    clock.pass_by(watchdog, 1)
    assert watchdog.hung(turns) == [1]


def test_after_ctrl_z_all_workers_get_their_time_again(tally):
    clock = PassingClock(1000.0)
    watchdog = Watchdog(tally.state, 60.0, clock)
    turns = {1: clock.now}
    clock.now += 3600
    assert watchdog.hung(turns) == []
    clock.pass_by(watchdog, 61)
    assert watchdog.hung(turns) == [1]


def test_a_worker_that_is_killed_and_not_yet_gone_is_not_counted_again(tally):
    clock = PassingClock(1000.0)
    watchdog = Watchdog(tally.state, 60.0, clock)
    turns = {1: clock.now}
    clock.pass_by(watchdog, 61)
    assert watchdog.hung(turns) == [1]
    clock.now += 1
    assert watchdog.hung(turns) == []
    began_again = {1: clock.now}  # the number of a process that has ended is given to another one
    clock.pass_by(watchdog, 61)
    assert watchdog.hung(began_again) == [1]
