"""Intrinsic rewards lead an agent through a corridor whose end alone is worth something."""

from typing import Any

import pytest
from processes import REPOSITORY, Training
from shipped import say_steps
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(240)]

SECTION: dict[str, Any] = {
    "path": str(REPOSITORY / "algorithms" / "ppo"), "state_size": [25], "action_size": 2,
    "hidden_layers": [32], "episode_len": 48, "rollouts_per_batch": 8, "passes": 4,
    "minibatches": 2, "filter_states": False, "rewards_gamma": 0.95, "entropy_beta": 0.01,
    "initial_learning_rate": 3e-3, "max_global_step": 60_000, "seed": 1,
}  # fmt: skip

INTRINSIC = {
    "rnd": {"weight": 1.0, "learning_rate": 1e-3},
    "icm": {"weight": 0.1, "learning_rate": 1e-3},
}


@SHARED
@pytest.mark.parametrize(("name", "learner"), [("rnd", "process"), ("icm", "worker")])
def test_an_agent_finds_the_end_of_a_corridor(
    training: Training, capsys: pytest.CaptureFixture[str], name: str, learner: str
):
    """A training of 20,000 steps without intrinsic rewards was never there."""
    section = {**SECTION, "learner": learner, "intrinsic": {"name": name, **INTRINSIC[name]}}
    training.configure(section, {"goal-return": 0.5, "goal-episodes": 50})
    parameter_server = training.start_parameter_server()
    if learner == "process":
        training.start_learner()
    training.start_rlx_server()
    flags = ("--attempts", "3", "--per-connection", "8")
    training.start_environments(8, *flags, env="small_environments:Corridor-v0")
    assert parameter_server.wait(200) == 0
    say_steps(capsys, parameter_server, f"Corridor, ppo with {name}", 0.5)
