"""environments/OpenAI_Gym/main, run from another folder, as users run it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relaax.steps import TERMINATED

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).parents[3] / "environments" / "OpenAI_Gym" / "main"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_program_can_be_executed() -> None:
    assert PROGRAM.stat().st_mode & 0o111 == 0o111
    assert PROGRAM.read_text().startswith("#!/usr/bin/env python3\n")


def test_a_game_is_played_in_grey_frames_of_84_by_84_bytes(server, close, tmp_path: Path) -> None:
    server.greet = lambda number: close if number > 1 else None
    server.reply = lambda number, steps: close if len(server.steps) > 20 else None
    arguments = ("--rlx-server", server.url, "--env", "ALE/Boxing-v5", "--seed", "1")
    result = run(tmp_path, *arguments, "--attempts", "1", "--sticky", "0")
    assert (result.returncode, result.stderr) == (0, "")
    assert "training is over" in result.stdout
    for steps in server.steps[:20]:
        (frame,) = steps.observations
        assert (frame.shape, frame.dtype) == ((84, 84), np.uint8)
        assert frame.max() > 100


def test_any_other_environment_is_played_as_it_is(server, tmp_path: Path) -> None:
    arguments = ("--rlx-server", server.url, "--env", "CartPole-v1", "--episodes", "2")
    result = run(tmp_path, *arguments, "--count", "2")
    assert (result.returncode, result.stderr) == (0, "")
    assert sum(steps.flags[0] == TERMINATED for steps in server.steps) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--env", "ALE/NoSuchGame-v5"), "NoSuchGame"),
        (("--env", "CartPole-v1", "--sticky", "0.1"), "--sticky is for Atari games"),
        (("--env", "ALE/Boxing-v5", "--sticky", "2"), "--sticky"),
    ],
)
def test_an_impossible_command_line_is_status_2(
    arguments: tuple[str, ...], message: str, unused_url: str, tmp_path: Path
) -> None:
    result = run(tmp_path, "--rlx-server", unused_url, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
