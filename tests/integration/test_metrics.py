"""Metrics of all three sources end in TensorBoard event files."""

import math

import pytest
from event_scalars import scalars
from processes import SMALL_DA3C, Training
from worker_modes import IN_BOTH_MODES

pytestmark = [pytest.mark.integration, IN_BOTH_MODES]

EXPECTED = {
    "client/act_latency",
    "episode/length",
    "episode/reward",
    "episode/reward_per_step",
    "episode/reward_per_time",
    "episode/time",
    "inference/act_latency",
    "learner/entropy",
    "learner/grad",
    "learner/passes",
    "learner/policy_lag",
    "learner/policy_lag_max",
    "learner/policy_lag_min",
    "learner/policy_lag_p50",
    "learner/policy_lag_p99",
    "learner/policy_loss",
    "learner/rollouts_per_update",
    "learner/value_loss",
    "parameter_server/bytes_in_per_second",
    "parameter_server/bytes_out_per_second",
    "parameter_server/gradients_per_second",
    "parameter_server/reads_per_second",
    "server/connections",
    "server/environments",
    "server/steps_per_second",
}

#: What a shared worker measures about itself.
OF_INFERENCE = {
    f"inference/{what}{which}"
    for what in ("batch_size", "queue_wait", "time")
    for which in ("", "_min", "_p50", "_p99", "_max")
}


def test_every_metric_of_a_training_is_stored_at_its_step(training: Training):
    """It takes several times the two seconds in which the rate of steps is measured."""
    metrics = training.directory / "metrics"
    training.configure({**SMALL_DA3C, "max_global_step": 20_000}, {"metrics-dir": str(metrics)})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "1")
    assert parameter_server.wait() == 0
    last_step = int(parameter_server.says(r"global step ([\d,]+);")[1].replace(",", ""))
    stored = scalars(metrics / training.yaml.stem)  # the name of the run
    is_shared = training.workers != "connection"
    expected = EXPECTED | OF_INFERENCE if is_shared else EXPECTED
    assert set(stored) - {"learner/rollouts_dropped"} == expected
    for tag, points in stored.items():
        assert all(math.isfinite(value) for _, value in points), tag
        assert all(0 <= step <= last_step for step, _ in points), tag
    assert max(step for step, _ in stored["episode/reward"]) > 2000
    rewards = [reward for _, reward in stored["episode/reward"]]
    assert all(reward >= 8 and reward == int(reward) for reward in rewards)  # CartPole's shortest
    lengths = [length for _, length in stored["episode/length"]]
    assert min(rewards) <= min(lengths) <= max(lengths) <= max(rewards)
    assert all(0 < nats <= math.log(2) for _, nats in stored["learner/entropy"])
    for tag in (
        "inference/act_latency", "client/act_latency", "episode/time", "learner/grad",
        "learner/value_loss",
    ):  # fmt: skip
        assert all(value > 0 for _, value in stored[tag]), tag
    assert max(value for _, value in stored["server/steps_per_second"]) > 0
    assert min(value for _, value in stored["learner/rollouts_per_update"]) >= 1
    if is_shared:
        assert {value for _, value in stored["inference/batch_size_min"]} <= {0.0, 1.0, 2.0}
        assert max(value for _, value in stored["inference/batch_size_max"]) <= 2
    else:
        assert {value for _, value in stored["learner/rollouts_per_update"]} == {1.0}
