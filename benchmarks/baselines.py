"""Trainings of Stable-Baselines3, which training.py runs, each in a process of its own.

    python benchmarks/baselines.py cartpole PPO --seed 1
    python benchmarks/baselines.py boxing A2C --seconds 30

The last line of the output is JSON. Hyperparameters are those of RL Baselines3 Zoo
(hyperparams/ppo.yml and a2c.yml), but for A2C's 16 games on Atari, which are eight here as
everywhere, and for the schedules on Atari, which would not move within a measurement.
"""

import argparse
import json
import time
from typing import Any

import gymnasium
import no_tensorboard  # noqa: F401 - before Stable-Baselines3
import stable_baselines3
import torch
from atari_games import GAMES, stacked_games
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from zoo_settings import MOST_STEPS, PPO_ATARI, PPO_CARTPOLE

ENVIRONMENTS = 8

#: A training on CartPole-v1 that has not reached its goal by then has failed.
CARTPOLE_STEPS = 1_000_000


class SmallExtractor(BaseFeaturesExtractor):
    """DA3C's layers: 16 8x8 with stride 4, 32 4x4 with stride 2, 256 units."""

    def __init__(self, observation_space: gymnasium.spaces.Box) -> None:
        super().__init__(observation_space, features_dim=256)
        channels = observation_space.shape[0]
        self._layers = torch.nn.Sequential(
            torch.nn.Conv2d(channels, 16, 8, stride=4),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 32, 4, stride=2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(32 * 9 * 9, 256),
            torch.nn.ReLU(),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Return float32 [B, 256]."""
        features: torch.Tensor = self._layers(observations)
        return features


#: The same layers as DA3C, with the heads directly on top.
SAME_NETWORK = {"features_extractor_class": SmallExtractor, "net_arch": []}

A2C_OPTIMIZER = {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}}
A2C_ATARI: dict[str, Any] = {"ent_coef": 0.01, "vf_coef": 0.25}
BOXING: dict[str, tuple[Any, dict[str, Any]]] = {
    "A2C": (
        stable_baselines3.A2C,
        {**A2C_ATARI, "policy_kwargs": {**A2C_OPTIMIZER, **SAME_NETWORK}},
    ),
    "A2C-own-network": (stable_baselines3.A2C, {**A2C_ATARI, "policy_kwargs": A2C_OPTIMIZER}),
    "PPO": (stable_baselines3.PPO, {**PPO_ATARI.settings, "policy_kwargs": SAME_NETWORK}),
}


CARTPOLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "A2C": (stable_baselines3.A2C, {"ent_coef": 0.0}),
    "PPO": (stable_baselines3.PPO, PPO_CARTPOLE.settings),
}


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    found = cartpole(arguments) if arguments.what == "cartpole" else boxing(arguments)
    print(json.dumps(found))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("cartpole", "boxing"))
    parser.add_argument("name", choices=BOXING)
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch (default 2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--goal", type=float, default=475.0, help="cartpole's (default 475)")
    parser.add_argument("--warm-up", type=float, default=10.0, help="boxing's, seconds")
    parser.add_argument("--seconds", type=float, default=30.0, help="boxing's (default 30)")
    parser.add_argument("--games", choices=GAMES, default="dummy")
    return parser.parse_args()


def cartpole(arguments: argparse.Namespace) -> dict[str, Any]:
    algorithm, settings = CARTPOLE[arguments.name]
    seed = arguments.seed
    environments = make_vec_env("CartPole-v1", ENVIRONMENTS, seed=seed)
    model = algorithm("MlpPolicy", environments, seed=seed, **settings)
    goal = StopAtGoal(arguments.goal, CARTPOLE_STEPS)
    began = time.monotonic()
    model.learn(MOST_STEPS, callback=goal)
    return {
        "seconds": time.monotonic() - began,
        "steps": model.num_timesteps,
        "reached": goal.is_reached,
    }


class StopAtGoal(BaseCallback):
    """Ends a training at a mean return of the last 100 episodes, and after ``most_steps``."""

    def __init__(self, goal: float, most_steps: int) -> None:
        super().__init__()
        self._goal = goal
        self._most_steps = most_steps
        self.is_reached = False

    def _on_step(self) -> bool:
        returns = [info["r"] for info in self.model.ep_info_buffer or ()]
        self.is_reached = len(returns) == 100 and sum(returns) / 100 >= self._goal
        return not self.is_reached and self.num_timesteps < self._most_steps


def boxing(arguments: argparse.Namespace) -> dict[str, Any]:
    algorithm, settings = BOXING[arguments.name]
    stacked = stacked_games("ALE/Boxing-v5", ENVIRONMENTS, arguments.games)
    timer = Timer(arguments.warm_up, arguments.seconds)
    algorithm("CnnPolicy", stacked, seed=1, **settings).learn(MOST_STEPS, callback=timer)
    stacked.close()
    return {"steps_per_s": timer.steps_per_s, "seconds": timer.seconds}


class Timer(BaseCallback):
    """Times whole updates: from one rollout's start, after a warm-up, to that of a later one."""

    def __init__(self, warm_up_s: float, seconds: float) -> None:
        super().__init__()
        self._warm_up_s = warm_up_s
        self._least_s = seconds
        self._started: float | None = None
        self._began: tuple[float, int] | None = None
        self.seconds = 0.0
        self.steps_per_s = 0.0

    def _on_rollout_start(self) -> None:
        now, steps = time.monotonic(), self.num_timesteps
        if self._started is None:
            self._started = now
        elif self._began is None:
            if now - self._started >= self._warm_up_s:
                self._began = now, steps
        elif now - self._began[0] >= self._least_s:
            self.seconds = now - self._began[0]
            self.steps_per_s = (steps - self._began[1]) / self.seconds

    def _on_step(self) -> bool:
        return self.seconds == 0


if __name__ == "__main__":
    main()
