"""Five methods in folders of their own, each on a page, train through real servers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import Training
from shipped import say_steps
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(240)]

FOLDER = Path(__file__).parent

#: Trains a folder's algorithm until its mean return is a goal; shows the steps that this took.
Train = Callable[..., None]

#: Of ``HiddenReward``. That the actor does not see what is hidden is tested without a training.
ASYMMETRIC = {
    "state_size": {"seen": [1], "hidden": [1]}, "action_size": 2, "hidden": "hidden",
    "hidden_layers": [32], "episode_len": 10, "rewards_gamma": 0.01,
    "initial_learning_rate": 3e-3, "entropy_beta": 0.0, "max_global_step": 100_000,
}  # fmt: skip


@pytest.fixture(name="train")
def _train(training: Training, capsys: pytest.CaptureFixture[str]) -> Train:
    def train(
        name: str,
        env: str,
        goal: float,
        episodes: int,
        has_learner: bool = True,
        count: int = 8,
        **keys: Any,
    ) -> None:
        algorithm = {"path": str(FOLDER / name), "seed": 1, **keys}
        training.configure(algorithm, {"goal-return": goal, "goal-episodes": episodes})
        parameter_server = training.start_parameter_server()
        if has_learner:
            training.start_learner()
        training.start_rlx_server()
        flags = ("--attempts", "3", "--per-connection", str(min(count, 16)))
        training.start_environments(count, *flags, env=env)
        assert parameter_server.wait(180) == 0
        say_steps(capsys, parameter_server, f"{env}, {name}", goal)

    return train


@SHARED
def test_a_natural_gradient_step_with_a_line_search(train: Train):
    train(
        "natural_gradient", "CartPole-v1", goal=300, episodes=20, max_global_step=150_000,
        state_size=[4], action_size=2, episode_len=128, initialization="orthogonal",
    )  # fmt: skip


@SHARED
def test_a_critic_that_sees_an_observation_that_the_actor_does_not(train: Train):
    env = "small_environments:HiddenReward-v0"
    train("asymmetric_critic", env, goal=9.0, episodes=100, has_learner=False, **ASYMMETRIC)


@SHARED
def test_recurrent_q_learning_with_burn_in(train: Train):
    """Without a memory the mean return is 0: the first state alone says where to turn."""
    train(
        "recurrent_q", "small_environments:TMaze-v0", goal=0.8, episodes=100,
        state_size=[2], action_size=2, hidden_layers=[16], rewards_gamma=0.95,
        learning_starts=200, batch_size=32, updates_per_step=2.0, max_global_step=150_000,
        exploration={"steps": 400},
    )  # fmt: skip


@SHARED
def test_an_actor_critic_that_learns_from_fresh_rollouts_and_from_replay(train: Train):
    train(
        "actor_critic_replay", "CartPole-v1", goal=200, episodes=20, max_global_step=100_000,
        state_size=[4], action_size=2, episode_len=16, rewards_gamma=0.98, replay_size=50_000,
        initialization="orthogonal", hidden_layers=[64, 64], fresh=2,
    )  # fmt: skip


@SHARED
def test_a_population_with_more_policies_than_environments(train: Train):
    train(
        "population", "CartPole-v1", goal=200, episodes=20, count=6, max_global_step=500_000,
        state_size=[4], action_size=2, candidates=16,
    )  # fmt: skip
