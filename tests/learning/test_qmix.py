"""QMIX finds the payoff of the two-step game that needs agents to rely on one another."""

import re
import subprocess
import sys

import pytest
from processes import REPOSITORY, Training
from shipped import shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(300)]

PROGRAM = REPOSITORY / "environments" / "PettingZoo" / "main"

#: What agents earn that do not rely on one another, as those that learn for themselves, or by VDN.
SAFE = 7.0


@SHARED
def test_a_team_finds_the_best_payoff(training: Training):
    """With the shipped configuration, in fewer and larger steps; all actions are drawn evenly."""
    fewer = {"max_global_step": 2500, "learning_rate": 3e-3, "learning_starts": 200}
    training.configure({**shipped("qmix_matrix_game.yaml"), **fewer})
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    game = [sys.executable, str(PROGRAM), "--rlx-server", training.rlx_server_url]
    game += ["--env", "two_step_game", "--team", "mean", "--attempts", "3"]
    training.start("games", [*game, "--count", "4", "--per-connection", "4", "--seed", "1"])
    assert [process.wait(200) for process in training.processes] == [0, 0, 0, 0]
    training.start_rlx_server("--exploit")
    played = subprocess.run(
        [*game, "--episodes", "5", "--evaluate", "deterministic"],
        capture_output=True,
        text=True,
        check=True,
    )
    mean = re.search(r"return of \d+ episodes: mean ([\d.]+)", played.stdout + played.stderr)
    assert mean is not None
    assert float(mean[1]) > SAFE
