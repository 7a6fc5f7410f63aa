"""``benchmarks/learning.py`` as a whole: it trains with both programs, and writes what came out."""

import json
import sys
from pathlib import Path

import pytest
from learning_table import EVALUATED, HEADER
from processes import REPOSITORY, Training

pytestmark = pytest.mark.integration

STEPS = 1000

#: Small enough for seconds: a network of eight units, and an update for every fourth step.
SMALL = ("hidden_layers=[8]", "batch_size=16", "learning_starts=50", "updates_per_step=0.25")


def test_an_algorithm_with_a_learner_is_compared_with_the_same_of_another_library(
    training: Training, tmp_path: Path
):
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("matplotlib")
    rows, plot = tmp_path / "learning.json", tmp_path / "learning.png"
    program = training.start(
        "learning",
        [
            sys.executable, str(REPOSITORY / "benchmarks" / "learning.py"),
            "--environments", "sac_pendulum", "--seeds", "1", "--steps", str(STEPS),
            "--seconds", "60", "--baseline-seconds", "5", "--evaluation-episodes", "1",
            "--set", *SMALL, "--json", str(rows), "--plot", str(plot),
        ],
    )  # fmt: skip
    assert program.wait(280) == 0
    ours, theirs = json.loads(rows.read_text())
    assert (ours["program"], theirs["program"]) == ("RELAAX", "SAC (SB3)")
    assert ours["steps"] >= STEPS
    assert ours["points"]
    for row in ours, theirs:
        assert -2000 < row["evaluation"] < 0
    header, _, *lines = (line for line in program.output().splitlines() if line.startswith("|"))
    assert header == f"| {' | '.join((*HEADER, EVALUATED))} |"
    assert [line.split(" | ")[1] for line in lines] == ["RELAAX", "SAC (SB3)"]
    assert plot.read_bytes().startswith(b"\x89PNG")
