"""How far the global step can be behind: episodes are dated with the most steps."""

import pytest
from learning_cases import CASES
from uncounted import Uncounted, most_uncounted

DA3C = {"episode_len": 5, "rollouts_per_update": 4, "wait_for_learning": "never"}


def test_steps_that_the_learner_has_not_been_given_are_added():
    sac = CASES["sac_pendulum"]
    assert most_uncounted({}, sac, 1).most_at(1000, 0.0) >= 1000 + 256 + sac.environments


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (2, 2), (100, 4), ("connection", 4)])
def test_each_worker_that_has_a_connection_holds_steps_back(workers, count):
    sac = CASES["sac_pendulum"]
    assert most_uncounted({}, sac, workers).steps == count * 256 + 2 * sac.environments


def test_what_the_learner_was_given_since_it_last_counted_is_added():
    assert Uncounted(10, seconds=0.5).most_at(counted=2000, seconds=20.0) == 2000 + 10 + 50


def test_at_the_beginning_no_more_is_added_than_there_can_be():
    assert Uncounted(0, seconds=0.5).most_at(counted=100, seconds=0.0) == 200


def test_where_workers_learn_steps_are_added_that_are_still_in_rollouts():
    cartpole = CASES["cartpole"]
    uncounted = most_uncounted(DA3C, cartpole, None)
    assert uncounted.most_at(1000, 3.0) == 1000 + (2 * 4 + cartpole.environments) * 5
