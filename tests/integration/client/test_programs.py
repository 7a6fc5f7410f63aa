"""The programs of environments/, as a user starts them, with real servers."""

import os
import sys
from typing import Any

import pytest
from processes import REPOSITORY, SMALL_DA3C, Process, Training
from worker_modes import SHARED

pytestmark = pytest.mark.integration

ENVIRONMENTS = REPOSITORY / "environments"

#: With it the programs find the stand-in for the Lab.
PYTHONPATH = f"PYTHONPATH={REPOSITORY / 'tests' / 'stand_in'}:{os.environ.get('PYTHONPATH', '')}"

#: Of each program: its arguments, and the actions and states of what it plays.
PROGRAMS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "ALE": (
        ["--rom", "pong", "--minimal-actions"], {"action_size": 6, "state_size": [84, 84]},
    ),
    "ViZDoom": (
        ["--scenario", "basic", "--variables"],
        {"action_size": 4, "state_size": {"screen": [60, 80, 1], "variables": [1]}},
    ),
    "DeepMind_Lab": (
        ["--fps", "30"], {"action_size": 11, "state_size": [84, 84]},
    ),
}  # fmt: skip


def start(training: Training, name: str, *more: str) -> Process:
    program, (arguments, _) = ENVIRONMENTS / name / "main", PROGRAMS[name]
    return training.start(
        name,
        [
            "env", PYTHONPATH, sys.executable, str(program),
            "--rlx-server", training.rlx_server_url, *arguments, *more,
        ],
    )  # fmt: skip


@SHARED
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_two_environments_until_the_training_is_over(
    training: Training, name: str
):
    _, fits = PROGRAMS[name]
    training.configure({**SMALL_DA3C, **fits, "history_len": 1, "max_global_step": 300})
    training.start_parameter_server()
    training.start_rlx_server()
    program = start(training, name, "--count", "2", "--seed", "1")
    assert program.wait() == 0, program.output()
    assert "training is over" in program.output()
    assert "Traceback" not in program.output()


def test_a_game_that_is_misspelt_is_an_error_of_one_line(training: Training):
    program = start(training, "ALE", "--rom", "pongg")
    assert program.wait() == 2
    assert (
        program.output()
        .splitlines()[-1]
        .endswith("there is no game 'pongg' in /roms, and none in ale-py; did you mean pong?")
    )


def test_a_lab_that_is_not_installed_is_named(training: Training):
    program = training.start(
        "lab",
        [
            sys.executable, str(ENVIRONMENTS / "DeepMind_Lab" / "main"),
            "--rlx-server", training.rlx_server_url,
        ],
    )  # fmt: skip
    assert program.wait() == 2
    assert "tests/demo_map: No module named 'deepmind_lab'" in program.output()


def test_an_older_agents_options_are_understood(training: Training):
    """The Lab's own program is replaced by ours, and started as before."""
    agent = ENVIRONMENTS / "DeepMind_Lab" / "random_agent.py"
    words = ["--rlx_server", training.rlx_server_url, "--level_script", "tests/demo_map"]
    program = training.start(
        "agent",
        [
            "env", PYTHONPATH, sys.executable, str(agent),
            *words, "--attempts", "1",
        ],
    )  # fmt: skip
    assert program.wait() == 1
    assert "there was never a session with the RLX server" in program.output()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_help_says_what_is_played(name: str, training: Training):
    program = training.start(name, [sys.executable, str(ENVIRONMENTS / name / "main"), "--help"])
    assert program.wait() == 0
    assert "--rlx-server HOST:PORT" in program.output()
    assert os.path.exists(ENVIRONMENTS / name / "README.md")
