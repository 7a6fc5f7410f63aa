"""A training whose steps are stored by replay servers, and what is left of it when parts die."""

import pytest
from processes import REPOSITORY, Training, free_port
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]

SMALL_SAC = {
    "path": str(REPOSITORY / "algorithms" / "sac"), "state_size": [3], "action_size": 1,
    "action_low": -2, "action_high": 2, "hidden_layers": [8], "batch_size": 16,
    "learning_starts": 20, "updates_per_step": 0.25, "replay_size": 10_000, "seed": 1,
}  # fmt: skip


def test_when_the_steps_are_done_everybody_ends_with_status_zero(training: Training):
    urls = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    training.configure({**SMALL_SAC, "max_global_step": 1500}, learner={"replay-servers": urls})
    training.start_parameter_server()
    for url in urls:
        training.start_replay_server(url)
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "2", env="Pendulum-v1")
    assert [process.wait() for process in training.processes] == [0] * 6
