"""What relaax-learner refuses when it starts."""

import pytest
from processes import SMALL_SAC, Training
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]


@pytest.mark.parametrize("option", ["--publish-every", "--publish-interval"])
def test_a_learner_that_shares_gradients_has_nothing_to_publish(training: Training, option: str):
    training.configure({**SMALL_SAC, "learners": {"count": 2}})
    learner = training.start_command("relaax-learner", option, "3")
    assert learner.wait() == 2
    assert f"error: {option}: this learner shares gradients" in learner.output()


def test_an_algorithm_without_a_learner_is_refused(training: Training):
    process = training.start_command("relaax-learner")
    assert process.wait() == 2
    assert "has no learner: its workers learn" in process.output()
