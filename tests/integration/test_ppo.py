"""PPO through real servers: rollouts of old parameters are dropped, and counted."""

import re

import pytest
from event_scalars import scalars
from processes import SMALL_PPO, Training, wait_for
from worker_modes import SHARED

from relaax.replay.client.stub import ReplayStub

pytestmark = [pytest.mark.integration, SHARED]


def test_a_training_learns_from_each_step_once(training: Training):
    training.configure({**SMALL_PPO, "max_global_step": 3000})
    training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(4, "--attempts", "2")
    assert [process.wait() for process in training.processes] == [0, 0, 0, 0]
    said = r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps of environments"
    batches, steps = (
        int(number.replace(",", "")) for number in re.findall(said, learner.output())[0]
    )
    # Of each environment less than a rollout is left, and of all less than a batch; but where that
    # waits, all that a worker has queued may still come at once.
    assert steps - 4 * 16 - 64 - 256 <= batches * 64 <= steps


@pytest.mark.parametrize(
    "option", ["--prefetch", "--prefetch-threads", "--publish-every", "--publish-interval"]
)
def test_options_of_learners_that_are_off_policy_are_refused(training: Training, option: str):
    training.configure(SMALL_PPO)
    learner = training.start_command("relaax-learner", option, "3")
    assert learner.wait() == 2
    assert f"error: {option}: this algorithm learns from what its newest" in learner.output()


def test_each_environment_is_learnt_from_and_its_share_is_a_metric(training: Training):
    metrics = training.directory / "metrics"
    training.configure({**SMALL_PPO, "max_policy_lag": 1}, {"metrics-dir": str(metrics)})
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(4)
    replay = ReplayStub(training.learner_url)
    wait_for(lambda: replay.stats().get("learnt share/least", 0.0) > 0.5, "half of the steps")
    replay.close()
    wait_for(lambda: scalars(metrics)["replay/learnt_share/least"], "the metric")
