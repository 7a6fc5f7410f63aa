"""A learner learns where the configuration puts it: DA3C in a process, PPO in its worker."""

from typing import Any

import pytest
from processes import REPOSITORY, Training
from worker_modes import SHARED

from relaax.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

DEADLINE_S = 300.0


def shipped(name: str, file: str) -> dict[str, Any]:
    """The ``algorithm:`` section of a shipped configuration, with the folder of ``name``."""
    section = {**read_yaml(REPOSITORY / "config" / file)["algorithm"]}
    section.pop("name", None)
    return {**section, "path": str(REPOSITORY / "algorithms" / name)}


def steps_to(training: Training, algorithm: dict[str, Any], goal: float, has_learner: bool) -> str:
    """Train 8 environments until their mean return is ``goal``; return how many steps it took."""
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    if has_learner:
        training.start_learner()
    training.start_rlx_server()
    training.start_environments(8, "--attempts", "3")
    assert parameter_server.wait(DEADLINE_S) == 0
    return parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]


@SHARED
def test_da3c_learns_in_a_process_of_its_own(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    """Acting with rollouts of older policies, V-trace corrects them: that is IMPALA."""
    algorithm = shipped("da3c", "da3c_cartpole.yaml")
    own = {"learner": "process", "rollouts_per_update": 8, "max_policy_lag": 1}
    steps = steps_to(training, {**algorithm, **own}, goal=120, has_learner=True)
    with capsys.disabled():
        print(f"\nCartPole-v1, DA3C with a learner: a mean return of 120 took {steps} steps")


@SHARED
def test_ppo_learns_in_its_worker(training: Training, capsys: pytest.CaptureFixture[str]):
    algorithm = {**shipped("ppo", "ppo_cartpole.yaml"), "learner": "worker"}
    steps = steps_to(training, algorithm, goal=300, has_learner=False)
    with capsys.disabled():
        print(f"\nCartPole-v1, PPO in its worker: a mean return of 300 took {steps} steps")
