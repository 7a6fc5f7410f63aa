"""Environments of all workers of an RLX server have places of their own."""

import os
import signal

import numpy as np
import pytest

from relaax.server.rlx_server.places import PlaceTable
from relaax.server.rlx_server.tally import Tally


@pytest.fixture(name="tally")
def _tally():
    return Tally()


def test_eight_workers_of_one_environment_cover_eight_places(tally):
    rows = [tally.row(tally.take()) for _ in range(8)]
    assert [row.places.take(1).tolist() for row in rows] == [[place] for place in range(8)]


def test_the_next_environment_gets_the_place_of_a_departed_one(tally):
    shared = tally.row(tally.take()).places
    taken = shared.take(4)
    shared.give_back(taken[1:3])
    assert shared.take(3).tolist() == [1, 2, 4]


def test_the_places_of_a_worker_that_was_killed_are_free(tally):
    number = tally.take()
    pid = os.fork()
    if pid == 0:
        tally.row(number).places.take(3)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert tally.places.held() == [0, 1, 2]
    tally.give_back(number)
    assert tally.row(tally.take()).places.take(1).tolist() == [0]


def test_environments_beyond_the_last_place_share_it():
    table = PlaceTable(most=3, is_shared=False)
    first, second = table.take(1, 2), table.take(2, 3)
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 2, 2])
    table.give_back(1, np.array([2]))
    assert table.held() == [0, 1, 2]
