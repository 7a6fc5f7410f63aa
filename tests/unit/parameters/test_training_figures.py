"""The figures of a training, kept of the scalars that its processes send."""

import threading

import pytest
from clock import Clock
from served_worker import StoredMetrics

from relaax.errors import ConfigurationError
from relaax.parameters.process.standstill import Standstill
from relaax.parameters.process.training_figures import LatestReturns, TrainingFigures, WorkerCount


@pytest.fixture(name="stored")
def _stored():
    return StoredMetrics()


@pytest.fixture(name="figures")
def _figures(stored):
    return TrainingFigures(stored, Standstill(has_learner=False), 3)


def test_curves_returns_and_scores_are_passed_on(figures, stored):
    curves = [("loss", 0.5, 7), ("episode/reward", 1.0, None), ("evaluation/reward", 2.0, 7)]
    for curve in curves:
        figures.scalar(*curve)
    assert stored.values == curves
    assert (figures.returns.mean(), figures.evaluations.mean()) == (1.0, 2.0)


def test_reports_of_workers_are_counted_by_their_kind_and_passed_to_nothing_else(figures, stored):
    reports = [("environments of a", 3), ("environments of b", 4), ("connections of a", 1)]
    for name, count in (*reports, ("environments of a", 5), ("wait of the learner: none", 7.5)):
        figures.scalar(f"server/{name}", count)
    assert (figures.environments.total(), figures.connections.total()) == (9, 1)
    assert stored.values == []


def test_a_score_is_handed_on_with_the_version_of_the_policy(figures):
    scores = []
    figures.on_score = lambda version, score: scores.append((version, score))
    figures.scalar("evaluation/reward by version", 9.5, 70)
    figures.scalar("evaluation/reward by version", 9.5)
    assert scores == [(70, 9.5)]


def test_a_worker_that_has_ended_counts_no_more():
    count = WorkerCount()
    count.note("a", 3)
    count.note("a", 0)
    assert count.total() == 0


def test_a_worker_that_was_killed_is_forgotten_after_half_a_minute():
    clock = Clock(0.0)
    count = WorkerCount(clock)
    count.note("a", 3)
    clock.now = 29.0
    assert count.total() == 3
    clock.now = 31.0
    assert count.total() == 0


def test_before_the_first_episode_there_is_no_mean():
    returns = LatestReturns(2)
    assert (returns.mean(), returns.earned(), returns.size()) == (None, None, 0)
    assert not returns.is_full()


def test_the_mean_is_of_the_last_episodes():
    returns = LatestReturns(3)
    seen = []
    for y in (100, 1, 2, 6):
        returns.add(y)
        seen.append((returns.mean(), returns.size(), returns.is_full()))
    assert seen == [
        (100, 1, False),
        (50.5, 2, False),
        (pytest.approx(103 / 3), 3, True),
        (3, 3, True),
    ]


def test_no_episode_of_many_threads_is_lost():
    returns = LatestReturns(4000)

    def report():
        for _ in range(500):
            returns.add(2.0)
            returns.mean()

    threads = [threading.Thread(target=report) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (returns.size(), returns.mean(), returns.is_full()) == (4000, 2.0, True)


def test_a_window_of_0_is_refused():
    with pytest.raises(ConfigurationError, match="is 0"):
        LatestReturns(0)
