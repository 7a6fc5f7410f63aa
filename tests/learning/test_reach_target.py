"""The environment that people copy from trains with its shipped configuration."""

import re
import sys

import pytest
from processes import REPOSITORY, Training
from shipped import goal_of, say_steps, shipped

pytestmark = pytest.mark.learning


def test_a_simulator_in_plain_python_learns(training: Training, capsys: pytest.CaptureFixture[str]):
    file = "da3c_reach_target.yaml"
    algorithm, goal = shipped(file), goal_of(file)
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    program = str(REPOSITORY / "environments" / "Reach_Target" / "main")
    environment = training.start(
        "environment",
        [sys.executable, program, "--rlx-server", training.rlx_server_url, "--attempts", "2"],
    )
    assert parameter_server.wait(200) == 0
    assert environment.wait() == 0
    assert re.search("stopping: .* the training is over", environment.output())
    say_steps(capsys, parameter_server, f"Reach_Target, {training.workers}", goal)
