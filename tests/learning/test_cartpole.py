"""Small trainings through real processes. ``make learning`` shows the figures."""

import time
from typing import Any

import pytest
from processes import Training
from shipped import goal_of, shipped
from worker_modes import SEVERAL, SEVERAL_IN_BOTH_MODES

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

DEADLINE_S = 400.0


def train(
    training: Training, algorithm: dict[str, Any], goal: float, per_connection: int = 1
) -> str:
    """Train 8 environments until 100 episodes have the mean return ``goal``; say what it took."""
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    started = time.monotonic()
    training.start_environments(8, "--attempts", "3", "--per-connection", str(per_connection))
    assert parameter_server.wait(DEADLINE_S) == 0
    seconds = time.monotonic() - started
    assert "the mean return has reached its goal" in parameter_server.output()
    steps = parameter_server.says(r"global step ([\d,]+);")[1]
    return f"a mean return of {goal:g} took {steps} steps and {seconds:.0f} s"


@pytest.fixture(name="show")
def _show(training: Training, capsys: pytest.CaptureFixture[str]) -> Any:
    """Print what a training took, past pytest's own output."""

    def show(what: str, said: str) -> None:
        with capsys.disabled():
            print(f"\nCartPole-v1, {what}, {training.workers}: {said}")

    return show


@SEVERAL_IN_BOTH_MODES
def test_one_configuration_learns_however_workers_are_shared(training: Training, show: Any):
    """A connection for each environment.

    In a shared worker the network changes while a rollout goes on: without V-trace training takes
    three times as long.
    """
    algorithm = shipped("da3c_cartpole.yaml")
    assert algorithm["vtrace"]
    show("a connection each", train(training, algorithm, goal=120))


@SEVERAL
def test_the_configuration_for_shared_workers_reaches_its_goal(training: Training, show: Any):
    file = "da3c_cartpole_fast.yaml"
    algorithm, goal = shipped(file), goal_of(file)
    show("one connection", train(training, algorithm, goal, per_connection=8))


@SEVERAL
def test_a_recurrent_network_learns(training: Training, show: Any):
    """With what docs/algorithms/da3c.md says about recurrent networks."""
    algorithm = shipped("da3c_cartpole_fast.yaml")
    del algorithm["hidden_layers"]
    dense = {"dense": {"units": 64, "activation": "tanh"}}
    recurrent = {
        "network": [dense, dense, {"lstm": 32}],
        "episode_len": 8,
        "normalize_advantages": False,
        "initial_learning_rate": 1.5e-3,
        "passes": 4,
    }
    show("LSTM", train(training, {**algorithm, **recurrent}, goal=100))
