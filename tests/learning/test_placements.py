"""A learner learns where the configuration puts it: DA3C in a process, PPO in its worker."""

import pytest
from processes import Training
from shipped import say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

DEADLINE_S = 300.0


@SHARED
def test_da3c_learns_in_a_process_of_its_own(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    """Acting with rollouts of older policies, V-trace corrects them: that is IMPALA."""
    algorithm, goal = shipped("da3c_cartpole.yaml"), 120
    own = {"learner": "process", "rollouts_per_update": 8, "max_policy_lag": 1}
    training.configure({**algorithm, **own}, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(8, "--attempts", "3")
    assert parameter_server.wait(DEADLINE_S) == 0
    say_steps(capsys, parameter_server, "CartPole-v1, DA3C with a learner", goal)


@SHARED
def test_ppo_learns_in_its_worker(training: Training, capsys: pytest.CaptureFixture[str]):
    algorithm, goal = shipped("ppo_cartpole.yaml"), 300
    training.configure({**algorithm, "learner": "worker"}, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(8, "--attempts", "3")
    assert parameter_server.wait(DEADLINE_S) == 0
    say_steps(capsys, parameter_server, "CartPole-v1, PPO in its worker", goal)
