"""Stable-Baselines3 on an environment of learning.py, which runs it in a process of its own.

    python benchmarks/learning_baselines.py lunarlander --seed 1 --seconds 60

Each line of the output is JSON: an episode that has ended; the last one has no reward, says how far
the training went, and what the policy earned in its evaluation, if there was one.
"""

import argparse
import json
import time
from typing import Any

import no_tensorboard  # noqa: F401 - before Stable-Baselines3
import numpy as np
import stable_baselines3
import torch
from atari_games import stacked_games
from learning_cases import CASES, Case
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, sync_envs_normalization
from zoo_settings import MOST_STEPS, Baseline

#: Added to a training's seed for that of its evaluation.
EVALUATION_SEED = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environment", choices=CASES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0, help="most (default 600)")
    parser.add_argument("--steps", type=int, help="most (default: those of the configuration)")
    parser.add_argument("--evaluation-episodes", type=int, help="default: the environment's")
    parser.add_argument("--threads", type=int, help="of PyTorch (default: the environment's)")
    arguments = parser.parse_args()
    case, seed = CASES[arguments.environment], arguments.seed
    torch.set_num_threads(arguments.threads or case.baseline.threads)
    model = model_of(case, seed)
    report = Report(arguments.steps or case.steps, arguments.seconds)
    model.learn(MOST_STEPS, callback=report)
    seconds = report.seconds
    episodes = arguments.evaluation_episodes
    found = evaluated(model, case, seed, case.evaluation_episodes if episodes is None else episodes)
    say(model.num_timesteps, seconds, None, evaluation=found)


def model_of(case: Case, seed: int) -> BaseAlgorithm:
    """Return the baseline's algorithm before its training."""
    algorithm = getattr(stable_baselines3, case.baseline.algorithm)
    played = environments(case, case.baseline.environments, seed)
    return algorithm(case.baseline.policy, played, seed=seed, **settings(case.baseline, played))


def environments(case: Case, count: int, seed: int) -> VecEnv:
    """Return ``count`` environments, all in this process."""
    if case.is_atari:
        return stacked_games(case.env_id, count, seed=seed)
    made = make_vec_env(case.env_id, count, seed=seed, env_kwargs=case.env_kwargs)
    if not case.baseline.normalize:
        return made
    return VecNormalize(made, gamma=case.baseline.settings["gamma"])


def settings(baseline: Baseline, played: VecEnv) -> dict[str, Any]:
    """Return the settings, with classes in the place of names, and noise of an action's size."""
    chosen = dict(baseline.settings)
    policy = dict(chosen.get("policy_kwargs", {}))
    if "activation_fn" in policy:
        policy["activation_fn"] = getattr(torch.nn, policy["activation_fn"])
        chosen["policy_kwargs"] = policy
    if baseline.noise is not None:
        size = played.action_space.shape[-1]
        chosen["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, baseline.noise))
    return chosen


def evaluated(model: BaseAlgorithm, case: Case, seed: int, episodes: int) -> float | None:
    """Return the mean return of ``episodes`` without drawn actions; None for no episodes."""
    if episodes == 0:
        return None
    played = environments(case, 1, seed + EVALUATION_SEED)
    if isinstance(played, VecNormalize):
        sync_envs_normalization(model.get_env(), played)
        played.training = played.norm_reward = False
    mean, _ = evaluate_policy(model, played, episodes, deterministic=True)
    return float(mean)


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


def say(steps: int, seconds: float, reward: float | None, evaluation: float | None = None) -> None:
    line = {"steps": steps, "seconds": seconds, "reward": reward, "evaluation": evaluation}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
