"""What actors do with published parameters: Surreal's list (seed 000, "Actor")."""

import numpy as np
import pytest
from stored_metrics import StoredMetrics

from relaax.learning.policy_use import PolicyUse
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import FINAL, START, TERMINATED

DELAY, ACTIONS, EPISODES = (
    f"inference/{name}" for name in ("publish delay", "actions per update", "episodes per update")
)


def steps(*flags):
    return StepBatch(np.arange(len(flags)), np.array(flags, np.uint8), {})


@pytest.fixture(name="clock")
def _clock():
    return [0.0]


@pytest.fixture(name="stored")
def _stored():
    return StoredMetrics()


@pytest.fixture(name="use")
def _use(stored, clock):
    return PolicyUse(stored, lambda: clock[0])


def test_actions_and_episodes_are_counted_between_updates(use, stored, clock):
    use.acted(steps(START, 0, 0, TERMINATED))
    use.acted(steps(START, 0, TERMINATED))
    use.updated(0.5)
    use.acted(steps(START))
    clock[0] = 1.0
    use.updated(1.5)
    assert stored.newest() == {DELAY: 1.0, ACTIONS: 4.0, EPISODES: 1.0}


def test_a_step_in_which_an_episode_was_cut_off_is_no_action(use, stored, clock):
    use.acted(steps(0, FINAL))
    clock[0] = 1.0
    use.updated(0.0)
    assert stored.newest() == {DELAY: 0.0, ACTIONS: 1, EPISODES: 1}


def test_an_age_that_is_not_known_is_not_stored(use, stored, clock):
    clock[0] = 1.0
    use.updated(None)
    assert stored.newest() == {ACTIONS: 0, EPISODES: 0}
