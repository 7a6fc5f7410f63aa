"""UNREAL finds the goal of a maze with its shipped configuration, in a smaller one."""

import sys

import pytest
from processes import REPOSITORY, Training
from shipped import say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

PROGRAM = REPOSITORY / "environments" / "Maze" / "main"


@SHARED
def test_it_finds_the_goal_of_a_small_maze(training: Training, capsys: pytest.CaptureFixture[str]):
    """Actions at random have a mean return of 0.36 (1,000 episodes)."""
    algorithm = shipped("unreal_maze.yaml")
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
    say_steps(capsys, parameter_server, "a maze of 2x2 rooms, unreal", goal)
