"""What relaax-learner refuses when it starts."""

import pytest
from processes import SMALL_SAC, Training
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ({"save-replay": True, "replay-servers": ["127.0.0.1:1"]}, "replay servers hold the steps"),
        ({"save-replay": True, "checkpoint-dir": None}, "--save-replay needs --checkpoint-dir"),
        ({"lease": 5, "replay-servers": ["127.0.0.1:1"]}, "--lease: replay servers hold the steps"),
        (
            {"evict-interval": 5, "replay-servers": ["127.0.0.1:1"]},
            "--evict-interval: replay servers hold the steps",
        ),
        ({"evict-interval": 5}, "--evict-interval: without --evict-after nothing is evicted"),
        (
            {"publish-interval": 1, "publish-every": 5},
            "--publish-interval: with --publish-every the learner publishes by its steps",
        ),
    ],
)
def test_options_that_would_have_no_effect_are_refused(training: Training, learner, message: str):
    training.configure(SMALL_SAC, learner=learner)
    process = training.start_command("relaax-learner")
    assert process.wait() == 2
    (said,) = process.output().splitlines()  # before anything is done
    assert message in said


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
