"""Continuous actions: a shipped configuration swings a pendulum up."""

import pytest
from processes import REPOSITORY, Training
from worker_modes import SEVERAL

from relaax.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400), SEVERAL]

#: Reached on the way to the configuration's own goal; random actions have a mean return of -1,200.
GOAL = -500


def test_da3c_cont_learns_pendulum(training: Training, capsys: pytest.CaptureFixture[str]):
    shipped = read_yaml(REPOSITORY / "config" / "da3c_cont_pendulum.yaml")
    algorithm = {**shipped["algorithm"], "path": str(REPOSITORY / "algorithms" / "da3c_cont")}
    training.configure(algorithm, {"goal-return": GOAL})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(
        8, "--per-connection", "8", "--attempts", "3", "--env", "Pendulum-v1"
    )
    assert parameter_server.wait(300) == 0
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]
    with capsys.disabled():
        print(f"\nPendulum-v1, {training.workers}: a mean return of {GOAL} took {steps} steps")
