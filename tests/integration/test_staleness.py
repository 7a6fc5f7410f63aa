"""Acting is at most so many versions ahead of learning, in real processes."""

import pytest
from processes import SMALL_PPO, Training, wait_for

from relaax.replay.client.stub import ReplayStub

pytestmark = pytest.mark.integration

BATCHES = 20


@pytest.fixture(name="replay")
def _replay(training: Training):
    replay = ReplayStub(training.learner_url)
    yield replay
    replay.close()


def drawn(replay: ReplayStub) -> float:
    """Return how many batches the learner has drawn."""
    return replay.stats()["items drawn"] / SMALL_PPO["rollouts_per_batch"]


def require_young(replay: ReplayStub, staleness: int) -> None:
    """Fail unless every rollout that was drawn was young enough, and none was let through."""
    counts = replay.stats()
    assert counts["rollouts/most versions behind"] <= staleness
    assert counts["rollouts/admitted beyond"] == 0


@pytest.mark.parametrize("staleness", [0, 2])
def test_no_rollout_of_actors_is_older_than_the_bound(
    training: Training, replay: ReplayStub, staleness: int
):
    training.configure({**SMALL_PPO, "max_staleness": staleness})
    training.start_parameter_server()
    learner = training.start_learner()
    training.start_actors(6)
    wait_for(lambda: drawn(replay) > BATCHES, "batches")
    require_young(replay, staleness)
    learner.kill()  # the next one knows nothing of rollouts that are under way
    training.start_learner()
    wait_for(lambda: drawn(replay) > BATCHES, "batches of the next learner")


def test_environments_of_one_worker_that_do_not_fit_together_are_all_learnt_from(
    training: Training, replay: ReplayStub
):
    training.configure({**SMALL_PPO, "max_staleness": 0})
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(6)
    wait_for(lambda: drawn(replay) > BATCHES, "batches")
    wait_for(lambda: replay.stats().get("learnt share/least", 0.0) > 0.5, "half of the steps")
