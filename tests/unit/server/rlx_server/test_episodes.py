"""What is counted for many environments that are not in step."""

import numpy as np
import pytest

from relaax.algorithm_base import Metrics
from relaax.errors import ProtocolError
from relaax.server.rlx_server.episodes import Episodes
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps


class Stored(Metrics):
    def __init__(self):
        self.rewards = []

    def scalar(self, name, y, x=None):
        if name == "episode reward":
            self.rewards.append(y)


def steps(**by_environment):
    """Reports as ``e3=(flags, reward)``."""
    environments = np.array([int(name[1:]) for name in by_environment])
    flags, rewards = zip(*by_environment.values(), strict=True)
    return Steps(environments, np.array(flags, np.uint8), np.array(rewards, float), (), ())


@pytest.fixture(name="stored")
def _stored():
    return Stored()


@pytest.fixture(name="episodes")
def _episodes(stored):
    return Episodes(4, stored)


def test_environments_are_counted_apart(episodes, stored):
    episodes.count(steps(e0=(START, 0), e2=(START, 0)))
    episodes.count(steps(e0=(0, 1.0), e2=(0, 10.0)))
    episodes.count(steps(e2=(0, 10.0)))
    scores, is_end = episodes.count(steps(e0=(TERMINATED, 2.0), e2=(TRUNCATED | FINAL, 5.0)))
    assert is_end
    assert scores.tolist() == [3.0, 25.0]
    assert stored.rewards == [3.0, 25.0]


def test_an_end_and_the_next_start_may_come_together(episodes):
    episodes.count(steps(e1=(START, 0)))
    assert episodes.count(steps(e1=(TERMINATED | START, 4.0)))[0].tolist() == [4.0]
    assert episodes.count(steps(e1=(TERMINATED, 1.5)))[0].tolist() == [1.5]


def test_a_start_in_the_middle_gives_the_episode_up(episodes, stored):
    episodes.count(steps(e0=(START, 0)))
    episodes.count(steps(e0=(0, 7.0)))
    scores, is_end = episodes.count(steps(e0=(START, 0)))
    assert (scores.tolist(), is_end, stored.rewards) == ([], True, [7.0])


def test_an_episode_without_a_step_leaves_no_metric(episodes, stored):
    episodes.count(steps(e0=(START, 0)))
    episodes.count(steps(e0=(START, 0)))
    assert stored.rewards == []


def test_a_reward_where_no_episode_goes_on_is_refused_by_its_environment(episodes):
    episodes.count(steps(e0=(START, 0)))
    with pytest.raises(ProtocolError, match="no episode is going on in environment 3"):
        episodes.count(steps(e0=(0, 1.0), e3=(0, 1.0)))
    episodes.count(steps(e0=(TERMINATED, 1.0)))
    with pytest.raises(ProtocolError, match="environment 0"):
        episodes.count(steps(e0=(TERMINATED, 1.0)))
