"""Which part of each environment's steps is learnt from, and who is named where none is."""

import numpy as np

from relaax.replay.learnt import LONG_S, LearntSteps


def counted():
    now = [0.0]
    return LearntSteps(lambda: now[0]), now


def test_the_share_of_each_environment_is_that_of_its_own_steps():
    learnt, _ = counted()
    learnt.stored(0, 30)
    learnt.stored(1, 10)
    learnt.learnt(np.array([0, 0, 1]), 10)
    assert learnt.shares() == {0: 2 / 3, 1: 1.0}


def test_an_environment_that_nothing_is_learnt_from_for_long_is_named_once_a_minute():
    learnt, now = counted()
    for slot in (0, 1):
        learnt.stored(slot, 1024)
    learnt.learnt(np.array([0]), 128)
    assert learnt.complaint() is None
    now[0] = LONG_S + 5
    complaint = learnt.complaint()
    assert "nothing is learnt from 1 of 2 environments" in complaint
    assert "in place 1 has delivered 1,024 steps within 65 s" in complaint
    assert learnt.complaint() is None
    now[0] += LONG_S
    assert learnt.complaint() is not None
    learnt.learnt(np.array([1]), 128)
    now[0] += LONG_S
    assert learnt.complaint() is None


def test_while_nothing_is_learnt_at_all_none_is_named_and_those_that_left_are_forgotten():
    learnt, now = counted()
    learnt.stored(0, 10)
    now[0] = 10 * LONG_S
    assert learnt.complaint() is None
    learnt.stored(1, 10)
    learnt.learnt(np.array([1]), 10)
    learnt.left(0)
    assert learnt.complaint() is None
    assert learnt.shares() == {1: 1.0}
