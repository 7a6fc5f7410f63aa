"""Two players of tic-tac-toe learn by one policy that plays against itself."""

import re
import subprocess
import sys

import pytest
from processes import REPOSITORY, Training
from shipped import shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

#: The best policy against a player at random wins 99.5 % as the first player, 93.9 % as the second.
LEAST_WON = 0.9


@SHARED
def test_a_policy_that_plays_against_itself_beats_a_player_at_random_from_both_sides(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    """With the shipped configuration; no move is ever a forbidden one."""
    training.configure(shipped("ppo_tictactoe.yaml"))
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    game = ["--env", "classic/tictactoe-v3"]
    program = str(REPOSITORY / "environments" / "PettingZoo" / "main")
    server = ["--rlx-server", training.rlx_server_url]
    many = ["--count", "32", "--per-connection", "32", "--seed", "1", "--attempts", "3"]
    training.start("games", [sys.executable, program, *server, *game, *many])
    assert [process.wait(500) for process in training.processes] == [0, 0, 0, 0]
    training.start_rlx_server("--exploit")
    benchmark = str(REPOSITORY / "benchmarks" / "against_random.py")
    played = subprocess.run(
        [sys.executable, benchmark, *server, *game], capture_output=True, text=True, check=True
    )
    with capsys.disabled():
        print(f"\n{played.stdout}")
    assert re.findall(r"forbidden moves: (\d+)", played.stdout) == ["0", "0"]
    won = [float(share) / 100 for share in re.findall(r"won ([\d.]+)%", played.stdout)]
    assert sum(won) / 2 >= LEAST_WON
