"""Algorithms whose learner publishes train with their shipped configurations."""

import pytest
from processes import Training
from shipped import goal_of, say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]


@SHARED
@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("ppo", 475),
        ("impala", 150),
        ("trpo", 475),
        ("trpo_lbfgs", 475),
        ("acer", 475),
        ("es", 150),
        ("cem", 150),
    ],
)
def test_it_learns_to_balance_the_pole(
    training: Training, capsys: pytest.CaptureFixture[str], name: str, goal: float
):
    """A population's mean return is that of all candidates, most of which are worse than it is."""
    _train(training, capsys, name, "CartPole-v1", goal, 4)


@SHARED
def test_an_actor_critic_with_replay_learns_to_swing_the_pendulum_up(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    _train(training, capsys, "acer", "Pendulum-v1", -300, 8)


def _train(
    training: Training,
    capsys: pytest.CaptureFixture[str],
    name: str,
    env: str,
    goal: float,
    environments: int,
) -> None:
    task = env.split("-", maxsplit=1)[0].lower()
    file = f"{name}_{task}.yaml"
    algorithm = shipped(file)
    assert goal <= goal_of(file)
    training.configure(algorithm, {"goal-return": goal})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(environments, "--attempts", "3", env=env)
    assert [process.wait(300) for process in training.processes] == [0, 0, 0, 0]
    say_steps(capsys, parameter_server, f"{env}, {name}", goal)
