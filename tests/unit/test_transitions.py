"""Flags, read once: who stepped, ended, started, and wants an action."""

import numpy as np
import pytest

from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, read_transitions

CUT = TRUNCATED | FINAL


def read(flags, is_running=None):
    """Return the transitions of slots 10, 11, ... with rewards 0.5, 1.5, ..."""
    count = len(flags)
    return read_transitions(
        np.arange(10, 10 + count),
        np.array(flags, np.uint8),
        np.arange(count) + 0.5,
        np.ones(count, np.bool_) if is_running is None else np.array(is_running),
    )


def test_without_flags_all_step_and_want_an_action():
    read_once = read([0, 0, 0])
    assert read_once.only_steps
    assert read_once.stepped.tolist() == read_once.acting.tolist() == [10, 11, 12]
    assert read_once.rewards.tolist() == [0.5, 1.5, 2.5]
    assert not read_once.terminated.any()
    assert not read_once.starts.any()
    for nobody in (read_once.truncated, read_once.ended, read_once.given_up, read_once.started):
        assert nobody.tolist() == []


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0, {"stepped", "acting"}),
        (START, {"given_up", "acting", "started"}),
        (TERMINATED, {"stepped", "ended"}),
        (TERMINATED | FINAL, {"stepped", "ended"}),
        (CUT, {"stepped", "truncated", "ended"}),
        (TERMINATED | START, {"stepped", "ended", "acting", "started"}),
        (CUT | START, {"stepped", "truncated", "ended", "acting", "started"}),
    ],
)
def test_each_flag_says_what_it_means_beside_an_environment_that_steps(flags, expected):
    read_once = read([0, flags])
    names = ("stepped", "truncated", "ended", "given_up", "acting", "started")
    found = {name for name in names if 11 in getattr(read_once, name).tolist()}
    assert found == expected
    assert read_once.only_steps == (flags == 0)
    assert read_once.stepped.tolist()[0] == read_once.acting.tolist()[0] == 10


def test_rewards_and_ends_stay_with_their_steps():
    read_once = read([START, TERMINATED | START, 0, CUT, TERMINATED])
    assert read_once.stepped.tolist() == [11, 12, 13, 14]
    assert read_once.rewards.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert read_once.terminated.tolist() == [True, False, False, True]
    assert read_once.acting.tolist() == [10, 11, 12]
    assert read_once.starts.tolist() == [True, True, False]


def test_a_start_gives_up_only_an_episode_that_goes_on():
    assert read([START, START], is_running=[True, False]).given_up.tolist() == [10]
