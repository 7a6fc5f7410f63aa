"""R2D2 remembers a sign of the T-maze with its shipped configuration, in a shorter corridor."""

import sys

import pytest
from processes import REPOSITORY, Training
from shipped import goal_of, say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

PROGRAM = REPOSITORY / "environments" / "T_Maze" / "main"


@SHARED
def test_it_remembers_where_to_turn(training: Training, capsys: pytest.CaptureFixture[str]):
    """Without a memory the mean return is 1.95 at best: one way is worth 4, the other -0.1."""
    algorithm, goal = shipped("r2d2_tmaze.yaml"), goal_of("r2d2_tmaze.yaml")
    algorithm["exploration"] = {"end": 0.02, "steps": 10_000}
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    environments = training.start(
        "environments",
        [
            sys.executable, str(PROGRAM), "--rlx-server", training.rlx_server_url, "--count", "4",
            "--length", "8", "--seed", "1", "--attempts", "3",
        ],
    )  # fmt: skip
    processes = (parameter_server, learner, environments)
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    say_steps(capsys, parameter_server, "T-maze of length 8, r2d2", goal)
