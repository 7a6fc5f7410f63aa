"""TRPO trains with its shipped configuration: workers deliver steps, a learner publishes."""

import pytest
from processes import REPOSITORY, Training
from worker_modes import SHARED

from relaax.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]


@SHARED
def test_trpo_learns_to_balance_the_pole(training: Training, capsys: pytest.CaptureFixture[str]):
    shipped = read_yaml(REPOSITORY / "config" / "trpo_cartpole.yaml")
    algorithm = {**shipped["algorithm"], "path": str(REPOSITORY / "algorithms" / "trpo")}
    del algorithm["name"]
    goal = shipped["relaax-parameter-server"]["--goal-return"]
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(4, "--attempts", "3")
    assert [process.wait(300) for process in training.processes] == [0, 0, 0, 0]
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]
    with capsys.disabled():
        print(f"\nCartPole-v1, TRPO: a mean return of {goal:g} took {steps} steps")
