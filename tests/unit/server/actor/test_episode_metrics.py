"""What an actor's episodes are in the metrics: of a training, or scores of what was fetched."""

from contextlib import closing

import pytest
from actor_parts import Served, actor_of

from relaax.algorithm_base import EvaluatedPolicy
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.compat.surreal.session import EVAL_DETERMINISTIC, TRAINING
from relaax.server.actor.surreal import EpisodeMetrics
from relaax.telemetry.metrics import Metrics

EPISODE = EpisodeSummary(12.0, 5, 0.5)


class Scalars(Metrics):
    """Scalars that are kept."""

    def __init__(self):
        self.stored = []

    def scalar(self, name, y, x=None):
        self.stored.append((name, y, x))


def stored(mode, *known):
    metrics = Scalars()
    with closing(EpisodeMetrics(metrics, mode, RunObserver(), *known)) as episodes:
        episodes.on_episode(EPISODE)
    return metrics.stored


def test_an_episode_of_a_training_has_a_reward():
    assert ("episode/reward", 12.0, None) in stored(TRAINING)


@pytest.mark.parametrize("iteration", [lambda: None, lambda: 40])
def test_a_score_is_one_of_a_version_where_that_is_known(iteration):
    scores = stored(EVAL_DETERMINISTIC, lambda: EvaluatedPolicy(3, 1000), iteration)
    assert scores == [
        ("evaluation/reward", 12.0, 1000),
        ("evaluation/length", 5, 1000),
        ("evaluation/reward by version", 12.0, 3),
        ("evaluation/episode by version episode_length", 5, 3),
        ("evaluation/episode by version episode_return", 12.0, 3),
    ]


def test_the_environments_own_numbers_are_stored_beside_them():
    episode = EpisodeSummary(12.0, 5, 0.5, {"won": 1.0})
    trained, evaluated = Scalars(), Scalars()
    with closing(EpisodeMetrics(trained, TRAINING, RunObserver())) as episodes:
        episodes.on_episode(episode)
    with closing(
        EpisodeMetrics(
            evaluated, EVAL_DETERMINISTIC, RunObserver(), lambda: EvaluatedPolicy(3, 1000)
        )
    ) as episodes:
        episodes.on_episode(episode)
    assert ("client/episode_info/won", 1.0, None) in trained.stored
    assert ("evaluation/client episode_info/won", 1.0, 1000) in evaluated.stored
    assert ("evaluation/episode by version won", 1.0, 3) in evaluated.stored


def test_else_it_is_one_of_the_learners_step():
    scores = stored(EVAL_DETERMINISTIC, lambda: None, lambda: 40)
    assert ("evaluation/reward by iteration", 12.0, 40) in scores


def test_a_score_of_nothing_that_was_published_has_neither():
    assert [name for name, _, _ in stored(EVAL_DETERMINISTIC)] == [
        "evaluation/reward",
        "evaluation/length",
    ]


def test_an_actor_knows_the_learners_step_of_what_it_has_fetched():
    served = Served()
    with actor_of(served=served) as actor:
        actor.fetch_parameter()
        assert actor.fetched_iteration() is None
        served.publish(1.0, 0)
        actor.fetch_parameter()
        assert actor.fetched_iteration() == 0
        served.publish(2.0, 7)
        assert actor.fetched_iteration() == 0
        actor.fetch_parameter()
        assert actor.fetched_iteration() == 7
