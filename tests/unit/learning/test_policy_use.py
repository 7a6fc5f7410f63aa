"""What actors do with published parameters: Surreal's list (seed 000, "Actor")."""

import numpy as np
from stored_metrics import StoredMetrics

from relaax.learning.policy import PolicyUse
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import FINAL, START, TERMINATED

DELAY, ACTIONS, EPISODES = (
    f"actor/{name}" for name in ("publish delay", "actions per update", "episodes per update")
)


def steps(*flags):
    return StepBatch(np.arange(len(flags)), np.array(flags, np.uint8), {})


class Case:
    def __init__(self):
        self.now, self.stored = 0.0, StoredMetrics()
        self.use = PolicyUse(self.stored, lambda: self.now)

    def updated_after(self, seconds, age_s):
        self.now += seconds
        self.use.updated(age_s)
        return self.stored.newest()


def test_actions_and_episodes_are_counted_between_updates():
    case = Case()
    case.use.acted(steps(START, 0, 0, TERMINATED))
    case.use.acted(steps(START, 0, TERMINATED))
    assert case.updated_after(0.5, age_s=0.5) == {}
    case.use.acted(steps(START))
    assert case.updated_after(0.5, age_s=1.5) == {DELAY: 1.0, ACTIONS: 4.0, EPISODES: 1.0}


def test_a_step_in_which_an_episode_was_cut_off_is_no_action():
    case = Case()
    case.use.acted(steps(0, FINAL))
    assert case.updated_after(1.0, age_s=0.0) == {DELAY: 0.0, ACTIONS: 1, EPISODES: 1}


def test_an_age_that_is_not_known_is_not_stored():
    case = Case()
    case.use.acted(steps(START))
    assert case.updated_after(1.0, age_s=None) == {ACTIONS: 1, EPISODES: 0}


def test_updates_before_which_nothing_was_done_say_nothing():
    case = Case()
    assert case.updated_after(1.0, age_s=0.1) == {}
    case.use.acted(steps(START, 0))
    assert case.updated_after(0.5, age_s=0.2) == {}
    assert case.updated_after(0.5, age_s=0.3) == {DELAY: 0.2, ACTIONS: 2, EPISODES: 0}


def test_an_episode_that_is_cut_off_after_an_update_counts_for_the_next_one():
    case = Case()
    case.use.acted(steps(FINAL))
    assert case.updated_after(1.0, age_s=0.1) == {}
    case.use.acted(steps(START))
    assert case.updated_after(1.0, age_s=0.1) == {DELAY: 0.1, ACTIONS: 1, EPISODES: 1}
