"""The returns of the last episodes, taken from the passing metrics."""

import threading

import pytest

from relaax.errors import ConfigurationError
from relaax.telemetry.metrics import Metrics, NullMetrics
from relaax.telemetry.training import EpisodeReturns


class Recorded(Metrics):
    def __init__(self):
        self.calls = []

    def scalar(self, name, y, x=None):
        self.calls.append((name, y, x))


def test_every_scalar_is_passed_on():
    recorded = Recorded()
    returns = EpisodeReturns(recorded, 2)
    returns.scalar("loss", 0.5, 7)
    returns.scalar("episode/reward", 1.0)
    assert recorded.calls == [("loss", 0.5, 7), ("episode/reward", 1.0, None)]


def test_before_the_first_episode_there_is_no_mean():
    returns = EpisodeReturns(NullMetrics(), 2)
    returns.scalar("loss", 0.5)
    assert returns.mean() is None
    assert returns.size() == 0
    assert not returns.is_full()


def test_the_mean_is_of_the_last_episodes():
    returns = EpisodeReturns(NullMetrics(), 3)
    seen = []
    for y in (100, 1, 2, 6):
        returns.scalar("episode/reward", y)
        seen.append((returns.mean(), returns.size(), returns.is_full()))
    assert seen == [
        (100, 1, False),
        (50.5, 2, False),
        (pytest.approx(103 / 3), 3, True),
        (3, 3, True),
    ]


def test_no_episode_of_many_threads_is_lost():
    returns = EpisodeReturns(NullMetrics(), 4000)

    def report():
        for _ in range(500):
            returns.scalar("episode/reward", 2.0)
            returns.mean()

    threads = [threading.Thread(target=report) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (returns.size(), returns.mean(), returns.is_full()) == (4000, 2.0, True)


def test_a_window_of_0_is_refused():
    with pytest.raises(ConfigurationError, match="is 0"):
        EpisodeReturns(NullMetrics(), 0)
