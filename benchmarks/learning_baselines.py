"""Stable-Baselines3's PPO on an environment of learning.py, which runs it in a process of its own.

    python benchmarks/learning_baselines.py lunarlander --seed 1 --seconds 60

Each line of the output is JSON: an episode that has ended; the last one has no reward and says how
far the training went.
"""

import argparse
import json
import time
from typing import Any

import no_tensorboard  # noqa: F401 - before Stable-Baselines3
import torch
from atari_games import stacked_games
from learning_cases import CASES, MOST_STEPS, Case
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecNormalize


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environment", choices=CASES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="most (default 600)")
    parser.add_argument("--threads", type=int, help="of PyTorch (default: the environment's)")
    arguments = parser.parse_args()
    case, seed = CASES[arguments.environment], arguments.seed
    torch.set_num_threads(arguments.threads or case.ppo.threads)
    model = PPO(case.ppo.policy, environments(case, seed), seed=seed, **settings(case))
    report = Report(case.steps, arguments.seconds)
    model.learn(MOST_STEPS, callback=report)
    say(model.num_timesteps, report.seconds, None)


def environments(case: Case, seed: int) -> VecEnv:
    """Return all environments in this process."""
    if case.is_atari:
        return stacked_games(case.env_id, case.ppo.environments, seed=seed)
    made = make_vec_env(case.env_id, case.ppo.environments, seed=seed, env_kwargs=case.env_kwargs)
    return VecNormalize(made, gamma=case.ppo.settings["gamma"]) if case.ppo.normalize else made


def settings(case: Case) -> dict[str, Any]:
    """Return PPO's settings, with the class of an activation in the place of its name."""
    chosen = dict(case.ppo.settings)
    if "policy_kwargs" in chosen:
        policy = dict(chosen["policy_kwargs"])
        policy["activation_fn"] = getattr(torch.nn, policy["activation_fn"])
        chosen["policy_kwargs"] = policy
    return chosen


class Report(BaseCallback):
    """Says each episode's return, and ends the training in time."""

    def __init__(self, steps: int, seconds: float) -> None:
        super().__init__()
        self._most_steps = steps
        self._most_seconds = seconds
        self._began = 0.0

    @property
    def seconds(self) -> float:
        """Since the training began."""
        return time.monotonic() - self._began

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "episode" in info:
                say(self.num_timesteps, self.seconds, float(info["episode"]["r"]))
        return self.num_timesteps < self._most_steps and self.seconds < self._most_seconds


def say(steps: int, seconds: float, reward: float | None) -> None:
    print(json.dumps({"steps": steps, "seconds": seconds, "reward": reward}), flush=True)


if __name__ == "__main__":
    main()
