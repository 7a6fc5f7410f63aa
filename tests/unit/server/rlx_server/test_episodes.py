"""What is counted for many environments that are not in step."""

import numpy as np
import pytest
from served_worker import StoredMetrics

from relaax.errors import ProtocolError
from relaax.server.rlx_server.worker.environments import Episodes, NoEpisode
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps


class Counting:
    """Episodes of four environments, at the slots 2 to 5, with a clock that a test sets."""

    SLOTS = np.arange(2, 6)

    def __init__(self, most_steps=None):
        self.stored = StoredMetrics()
        self.now = 100.0
        self.episodes = Episodes(self.stored, lambda: self.now, most_steps)
        self.episodes.open(self.SLOTS)

    def _arrays(self, by_environment):
        slots = self.SLOTS[[int(name[1:]) for name in by_environment]]
        flags, rewards = zip(*by_environment.values(), strict=True)
        return slots, np.array(flags, np.uint8), np.array(rewards, float)

    def read(self, **by_environment):
        """Reports as ``e3=(flags, reward)``."""
        return self.episodes.read(*self._arrays(by_environment))

    def count(self, **by_environment):
        return self.episodes.count(self.read(**by_environment)).tolist()

    def any_ends(self, **by_environment):
        slots, flags, rewards = self._arrays(by_environment)
        return self.episodes.any_ends(slots, Steps(slots, flags, rewards, (), ()))


@pytest.fixture(name="counting")
def _counting():
    return Counting()


def test_environments_are_counted_apart(counting):
    counting.count(e0=(START, 0), e2=(START, 0))
    counting.count(e0=(0, 1.0), e2=(0, 10.0))
    counting.count(e2=(0, 10.0))
    assert counting.any_ends(e0=(TERMINATED, 2.0), e2=(TRUNCATED | FINAL, 5.0))
    assert counting.count(e0=(TERMINATED, 2.0), e2=(TRUNCATED | FINAL, 5.0)) == [3.0, 25.0]
    assert counting.stored.of("episode/reward") == [3.0, 25.0]


def test_an_end_and_the_next_start_may_come_together(counting):
    counting.count(e1=(START, 0))
    assert counting.count(e1=(TERMINATED | START, 4.0)) == [4.0]
    assert counting.count(e1=(TERMINATED, 1.5)) == [1.5]


def test_a_start_in_the_middle_gives_the_episode_up(counting):
    counting.count(e0=(START, 0))
    counting.count(e0=(0, 7.0))
    assert counting.any_ends(e0=(START, 0))
    assert counting.count(e0=(START, 0)) == []
    assert counting.stored.of("episode/reward") == [7.0]


def test_rewards_are_told_by_step_where_no_episode_ends(counting):
    counting.count(e0=(START, 0), e1=(START, 0))
    counting.count(e0=(0, 3.0), e1=(0, 2.0))
    counting.count(e0=(0, 1.0))
    counting.now += 1.0
    counting.episodes.store_if_due()
    assert counting.stored.of("episode/reward per step") == [2.0]
    assert counting.stored.of("episode/reward") == []


def test_rewards_that_are_too_large_to_be_summed_are_not_told(counting):
    counting.count(e0=(START, 0), e1=(START, 0))
    counting.count(e0=(0, 1e308), e1=(0, 1e308))
    counting.count(e0=(0, 1e308))
    counting.count(e0=(0, 1e308))
    counting.episodes.close()
    assert counting.stored.of("episode/reward per step") == []


def test_an_episode_without_a_step_leaves_no_metric(counting):
    counting.count(e0=(START, 0))
    counting.count(e0=(START, 0))
    assert counting.stored.values == []


def test_a_reward_where_no_episode_goes_on_is_refused_by_its_slot(counting):
    counting.count(e0=(START, 0))
    with pytest.raises(NoEpisode, match="no episode is going on") as refused:
        counting.count(e0=(0, 1.0), e3=(0, 1.0))
    assert refused.value.slot == 5
    counting.count(e0=(TERMINATED, 1.0))
    with pytest.raises(ProtocolError):
        counting.count(e0=(TERMINATED, 1.0))


def test_an_episode_has_at_most_the_allowed_steps():
    counting = Counting(most_steps=2)
    counting.count(e0=(START, 0))
    counting.count(e0=(0, 1.0))
    assert counting.count(e0=(TERMINATED | START, 1.0)) == [2.0]
    counting.count(e0=(0, 1.0))
    counting.count(e0=(0, 1.0))
    with pytest.raises(ProtocolError, match=r"more than 2 steps \(--max-episode-steps\)"):
        counting.count(e0=(TERMINATED, 1.0))


def test_reading_changes_nothing(counting):
    counting.count(e0=(START, 0))
    for _ in range(3):
        read = counting.read(e0=(TERMINATED, 4.0), e1=(START, 0))
    assert (read.ended.tolist(), read.started.tolist()) == ([2], [3])
    assert counting.episodes.count(read).tolist() == [4.0]


def test_a_first_start_is_no_end(counting):
    assert not counting.any_ends(e0=(START, 0))
    counting.count(e0=(START, 0))
    assert not counting.any_ends(e0=(0, 1.0), e1=(START, 0))


def test_episodes_that_are_given_up_are_counted_where_they_go_on(counting):
    counting.count(e0=(START, 0), e1=(START, 0))
    counting.count(e0=(0, 2.0))
    counting.episodes.give_up(counting.SLOTS)
    assert counting.stored.of("episode/reward") == [2.0]
    with pytest.raises(NoEpisode):
        counting.count(e0=(0, 1.0))


def test_a_slot_that_is_opened_again_has_no_episode_and_no_reward(counting):
    counting.count(e0=(START, 0))
    counting.count(e0=(0, 100.0))
    counting.episodes.open(counting.SLOTS[:1])
    with pytest.raises(NoEpisode):
        counting.count(e0=(0, 1.0))
    counting.count(e0=(START, 0))
    assert counting.count(e0=(TERMINATED, 1.0)) == [1.0]


def test_more_room_keeps_running_episodes(counting):
    counting.count(e3=(START, 0))
    counting.count(e3=(0, 3.0))
    counting.episodes.open(np.array([900]))
    assert counting.count(e3=(TERMINATED, 4.0)) == [7.0]


def test_lengths_and_times_are_stored_as_means_once_a_second(counting):
    counting.count(e0=(START, 0), e1=(START, 0))
    counting.now += 0.5
    counting.count(e0=(0, 1.0), e1=(TERMINATED, 2.0))
    counting.count(e0=(0, 1.0))
    counting.episodes.store_if_due()
    assert counting.stored.of("episode/length") == []
    counting.now += 0.5
    counting.count(e0=(TERMINATED, 1.0))
    counting.episodes.store_if_due()
    assert counting.stored.of("episode/length") == [2.0]
    assert counting.stored.of("episode/time") == [0.75]
    assert counting.stored.of("episode/reward per time") == [3.5]


def test_remaining_metrics_are_stored_at_the_end(counting):
    counting.count(e0=(START, 0))
    counting.count(e0=(TERMINATED, 1.0))
    counting.episodes.close()
    assert counting.stored.of("episode/length") == [1.0]


def test_a_sum_that_is_too_large_is_returned_and_leaves_no_metric(counting):
    counting.count(e0=(START, 0))
    counting.count(e0=(0, 1.7e308))
    assert counting.count(e0=(TERMINATED, 1.7e308)) == [np.inf]
    assert counting.stored.values == []
