"""Metrics of all three sources end in TensorBoard event files."""

import math
import struct
from collections import defaultdict
from pathlib import Path

import pytest
from processes import SMALL_DA3C, Training
from tensorboardX.proto import event_pb2
from worker_modes import IN_BOTH_MODES

pytestmark = [pytest.mark.integration, IN_BOTH_MODES]

EXPECTED = {
    "act_latency",
    "act_latency_on_client",
    "entropy",
    "episode_length",
    "episode_reward",
    "episode_time",
    "grad",
    "policy_lag",
    "policy_lag_max",
    "policy_lag_min",
    "policy_lag_p50",
    "policy_lag_p99",
    "policy_loss",
    "reward_per_time",
    "rollouts_per_update",
    "steps_per_second",
    "value_loss",
}

#: What a shared worker measures about itself.
OF_INFERENCE = {
    f"inference_{what}{which}"
    for what in ("batch_size", "queue_wait", "time")
    for which in ("", "_min", "_p50", "_p99", "_max")
}


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag. A record: length, its checksum, an Event, and its checksum."""
    found = defaultdict(list)
    for path in directory.glob("events.out.tfevents.*"):
        data, offset = path.read_bytes(), 0
        while offset < len(data):
            (length,) = struct.unpack_from("<Q", data, offset)
            event = event_pb2.Event.FromString(data[offset + 12 : offset + 12 + length])
            for value in event.summary.value:
                found[value.tag].append((event.step, value.simple_value))
            offset += 16 + length
    return found


def test_every_metric_of_a_training_is_stored_at_its_step(training: Training):
    metrics = training.directory / "metrics"
    training.configure({**SMALL_DA3C, "max_global_step": 8000}, {"metrics-dir": str(metrics)})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "1")
    assert parameter_server.wait() == 0
    last_step = int(parameter_server.says(r"global step ([\d,]+);")[1].replace(",", ""))
    stored = scalars(metrics)
    is_shared = training.workers != "connection"
    expected = EXPECTED | OF_INFERENCE if is_shared else EXPECTED
    assert set(stored) - {"rollouts_dropped"} == expected
    for tag, points in stored.items():
        assert all(math.isfinite(value) for _, value in points), tag
        assert all(0 <= step <= last_step for step, _ in points), tag
    assert max(step for step, _ in stored["episode_reward"]) > 4000
    rewards = [reward for _, reward in stored["episode_reward"]]
    assert all(reward >= 8 and reward == int(reward) for reward in rewards)  # CartPole's shortest
    lengths = [length for _, length in stored["episode_length"]]
    assert min(rewards) <= min(lengths) <= max(lengths) <= max(rewards)
    assert all(0 < nats <= math.log(2) for _, nats in stored["entropy"])
    for tag in ("act_latency", "act_latency_on_client", "episode_time", "grad", "value_loss"):
        assert all(value > 0 for _, value in stored[tag]), tag
    assert max(value for _, value in stored["steps_per_second"]) > 0
    assert min(value for _, value in stored["rollouts_per_update"]) >= 1
    if is_shared:
        assert {value for _, value in stored["inference_batch_size_min"]} <= {0.0, 1.0, 2.0}
        assert max(value for _, value in stored["inference_batch_size_max"]) <= 2
    else:
        assert {value for _, value in stored["rollouts_per_update"]} == {1.0}
