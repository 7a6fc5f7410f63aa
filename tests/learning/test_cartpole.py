"""Small trainings through real processes. ``make learning`` shows the figures."""

import time
from typing import Any

import pytest
from inference_modes import IN_BOTH_MODES
from processes import REPOSITORY, Training

from relaax.server.common.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600), IN_BOTH_MODES]

DEADLINE_S = 400.0


#: The configuration that is shipped for each inference mode.
SHIPPED = {"inline": "da3c_cartpole.yaml", "batched": "da3c_cartpole_fast.yaml"}

#: What a recurrent network wants otherwise than they say (docs/da3c.md).
RECURRENT: dict[str, dict[str, Any]] = {
    "inline": {},
    "batched": {"normalize_advantages": False, "initial_learning_rate": 3e-3, "passes": 4},
}


def shipped_algorithm(training: Training) -> dict[str, Any]:
    """The ``algorithm:`` section that the README's commands use, its path made absolute."""
    section = dict(read_yaml(REPOSITORY / "config" / SHIPPED[training.inference])["algorithm"])
    return {**section, "path": str(REPOSITORY / "algorithms" / "da3c")}


def train(training: Training, algorithm: dict[str, Any], goal: float) -> str:
    """Train 8 environments until 100 episodes have the mean return ``goal``; say what it took."""
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    started = time.monotonic()
    per_connection = "1" if training.inference == "inline" else "8"
    training.start_environments(8, "--attempts", "3", "--per-connection", per_connection)
    assert parameter_server.wait(DEADLINE_S) == 0
    seconds = time.monotonic() - started
    assert "the mean return has reached its goal" in parameter_server.output()
    steps = parameter_server.says(r"global step ([\d,]+);")[1]
    return f"a mean return of {goal:g} took {steps} steps and {seconds:.0f} s"


def test_the_shipped_configuration_learns_cartpole(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    said = train(training, shipped_algorithm(training), goal=195)
    with capsys.disabled():
        print(f"\nCartPole-v1, {training.inference}: {said}")


def test_a_recurrent_network_learns_cartpole(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    recurrent = {**shipped_algorithm(training), "lstm": True, "lstm_size": 32, "episode_len": 8}
    said = train(training, {**recurrent, **RECURRENT[training.inference]}, goal=100)
    with capsys.disabled():
        print(f"\nCartPole-v1 with LSTM, {training.inference}: {said}")
