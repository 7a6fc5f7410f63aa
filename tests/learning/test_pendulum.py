"""Continuous actions: a shipped configuration swings a pendulum up."""

import pytest
from processes import Training
from shipped import say_steps, shipped
from worker_modes import SEVERAL

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400), SEVERAL]

#: Reached on the way to the configuration's own goal; random actions have a mean return of -1,200.
GOAL = -500


def test_da3c_cont_learns_pendulum(training: Training, capsys: pytest.CaptureFixture[str]):
    algorithm = shipped("da3c_cont_pendulum.yaml")
    training.configure(algorithm, {"goal-return": GOAL})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(
        8, "--per-connection", "8", "--attempts", "3", "--env", "Pendulum-v1"
    )
    assert parameter_server.wait(300) == 0
    say_steps(capsys, parameter_server, f"Pendulum-v1, {training.workers}", GOAL)
