"""Trainings whose actions inference servers choose, and what is left of one when a server dies."""

import pytest
from processes import SMALL_PPO, Process, Training, free_port
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]


class Inferred:
    """A training with inference servers; its RLX server has neither parameters nor TensorFlow."""

    def __init__(self, training: Training, servers: int, **algorithm) -> None:
        self.training = training
        self.urls = [f"127.0.0.1:{free_port()}" for _ in range(servers)]
        training.configure({**SMALL_PPO, **algorithm}, rlx_server={"inference-servers": self.urls})
        training.start_parameter_server()
        self.learner = training.start_learner()
        self.servers = [self.start_server(url) for url in self.urls]

    def start_server(self, url: str) -> Process:
        process = self.training.start_command(
            "relaax-inference-server",
            "--bind",
            url,
            "--parameter-server",
            self.training.parameter_server_url,
        )
        process.says("choosing at ")
        return process


def test_a_training_whose_actions_a_server_chooses_ends_with_all_its_processes(training: Training):
    parts = Inferred(training, servers=1, max_global_step=3000)
    rlx_server = training.start_rlx_server()
    training.start_environments(4, "--attempts", "2")
    assert [process.wait() for process in training.processes] == [0] * 5
    assert "steps of environments" in parts.learner.output()
    assert "tensorflow" not in rlx_server.output()
