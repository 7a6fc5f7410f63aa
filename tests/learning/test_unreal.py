"""UNREAL finds the goal of a maze with its shipped configuration, in a smaller one."""

import sys

import pytest
from processes import REPOSITORY, Training
from worker_modes import SHARED

from relaax.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

PROGRAM = REPOSITORY / "environments" / "Maze" / "main"


@SHARED
def test_it_finds_the_goal_of_a_small_maze(training: Training, capsys: pytest.CaptureFixture[str]):
    """Actions at random have a mean return of 0.36 (1,000 episodes)."""
    shipped = read_yaml(REPOSITORY / "config" / "unreal_maze.yaml")
    algorithm = {**shipped["algorithm"], "path": str(REPOSITORY / "algorithms" / "unreal")}
    del algorithm["name"]
    goal = 0.9
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    environments = training.start(
        "environments",
        [
            sys.executable, str(PROGRAM), "--rlx-server", training.rlx_server_url, "--count", "8",
            "--size", "2", "--time-limit", "30", "--seed", "1", "--attempts", "3",
        ],
    )  # fmt: skip
    processes = (parameter_server, learner, environments)
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]
    with capsys.disabled():
        print(f"\na maze of 2x2 rooms, unreal: a mean return of {goal:g} took {steps} steps")
