"""The environment that people copy from trains with its shipped configuration."""

import re
import sys

import pytest
from processes import REPOSITORY, Training

from relaax.configuration.yaml_reader import read_yaml

pytestmark = pytest.mark.learning


def test_a_simulator_in_plain_python_learns(training: Training, capsys: pytest.CaptureFixture[str]):
    shipped = read_yaml(REPOSITORY / "config" / "da3c_reach_target.yaml")
    algorithm = {**shipped["algorithm"], "path": str(REPOSITORY / "algorithms" / "da3c")}
    goal = shipped["relaax-parameter-server"]["--goal-return"]
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
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]
    with capsys.disabled():
        print(f"\nReach_Target, {training.workers}: a mean return of {goal:g} took {steps} steps")
