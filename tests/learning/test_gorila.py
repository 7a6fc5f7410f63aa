"""Gorila: two learners of DQN, each with its own steps, move one set of parameters."""

import pytest
from processes import Training, free_port
from shipped import say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

#: Random actions have about 20 on the pole.
GOAL = 150


@SHARED
def test_two_bundles_of_actors_and_a_learner_learn_together(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    algorithm = shipped("gorila_cartpole.yaml")
    algorithm["hidden_layers"] = [64, 64]
    training.configure(algorithm, {"goal-return": GOAL, "goal-episodes": 10})
    parameter_server = training.start_parameter_server()
    for _ in range(2):
        training.learner_url = f"127.0.0.1:{free_port()}"
        training.rlx_server_url = f"127.0.0.1:{free_port()}"
        place = str(training.directory / f"learner {training.learner_url}")
        training.start_learner("--bind", training.learner_url, "--checkpoint-dir", place)
        training.start_rlx_server(
            "--bind", training.rlx_server_url, "--learner", training.learner_url
        )
        training.start_environments(2, "--attempts", "3")
    assert [process.wait(400) for process in training.processes] == [0] * 7
    say_steps(capsys, parameter_server, "CartPole-v1, Gorila", GOAL)
