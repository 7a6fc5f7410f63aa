"""Stable-Baselines3's algorithms with the settings of RL Baselines3 Zoo.

They stand in https://github.com/DLR-RM/rl-baselines3-zoo, hyperparams/ppo.yml, sac.yml, td3.yml and
dqn.yml, as of commit 22e3ff2 (April 2026); what is not named there is Stable-Baselines3's default.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

#: Given to ``learn``; a training is cut before that.
MOST_STEPS = 10_000_000


def falling(initial: float, steps: int) -> Callable[[float], float]:
    """Return the Zoo's linear schedule over ``steps``, and a tenth of ``initial`` after them.

    It needs the steps that are given to ``learn`` to be ``MOST_STEPS``.
    """

    def at(left: float) -> float:
        done = (1 - left) * MOST_STEPS
        return initial * max(1 - done / steps, 0.1)

    return at


def fraction(part: float, steps: int) -> float:
    """Return ``part`` of a training of ``steps`` as a part of ``MOST_STEPS``."""
    return part * steps / MOST_STEPS


@dataclass(frozen=True)
class Baseline:
    """An algorithm of Stable-Baselines3, by the name of its class, and its settings."""

    algorithm: str
    settings: dict[str, Any]
    environments: int = 1
    policy: str = "MlpPolicy"
    #: Whether observations and rewards go through VecNormalize, with the same discount.
    normalize: bool = False
    #: Standard deviation of the normal noise that is added to actions between -1 and 1.
    noise: float | None = None
    #: Of PyTorch: one or two, whichever was faster on two cores.
    threads: int = 1


PPO_CARTPOLE = Baseline(
    "PPO",
    {
        "n_steps": 32,
        "batch_size": 256,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "n_epochs": 20,
        "ent_coef": 0.0,
        "learning_rate": falling(0.001, 100_000),
        "clip_range": falling(0.2, 100_000),
    },
    environments=8,
)

PPO_PENDULUM = Baseline(
    "PPO",
    {
        "n_steps": 1024,
        "gae_lambda": 0.95,
        "gamma": 0.9,
        "n_epochs": 10,
        "ent_coef": 0.0,
        "learning_rate": 1e-3,
        "clip_range": 0.2,
        "use_sde": True,
        "sde_sample_freq": 4,
    },
    environments=4,
)

PPO_LUNAR_LANDER = Baseline(
    "PPO",
    {
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
    environments=16,
)

PPO_BIPEDAL_WALKER = Baseline(
    "PPO",
    {
        "n_steps": 2048,
        "batch_size": 64,
        "gae_lambda": 0.95,
        "gamma": 0.999,
        "n_epochs": 10,
        "ent_coef": 0.0,
        "learning_rate": 3e-4,
        "clip_range": 0.18,
    },
    environments=32,
    normalize=True,
)

#: Of HalfCheetah-v4, which is the latest that the Zoo has.
PPO_HALF_CHEETAH = Baseline(
    "PPO",
    {
        "n_steps": 512,
        "batch_size": 64,
        "gae_lambda": 0.92,
        "gamma": 0.98,
        "n_epochs": 20,
        "ent_coef": 0.000401762,
        "learning_rate": 2.0633e-05,
        "clip_range": 0.1,
        "max_grad_norm": 0.8,
        "vf_coef": 0.58096,
        "policy_kwargs": {
            "log_std_init": -2,
            "ortho_init": False,
            "activation_fn": "ReLU",
            "net_arch": {"pi": [256, 256], "vf": [256, 256]},
        },
    },
    normalize=True,
)

#: Without the schedules, which fall over ten million steps.
PPO_ATARI = Baseline(
    "PPO",
    {
        "n_steps": 128,
        "n_epochs": 4,
        "batch_size": 256,
        "learning_rate": 2.5e-4,
        "clip_range": 0.1,
        "vf_coef": 0.5,
        "ent_coef": 0.01,
    },
    environments=8,
    policy="CnnPolicy",
    threads=2,
)

#: Of Atari: the Zoo does not know the environment.
PPO_IMAGE_AND_VECTOR = replace(PPO_ATARI, policy="MultiInputPolicy")

SAC_PENDULUM = Baseline("SAC", {"learning_rate": 1e-3})

#: Of HalfCheetah-v4, which is the latest that the Zoo has.
SAC_HALF_CHEETAH = Baseline("SAC", {"learning_starts": 10_000})

TD3_PENDULUM = Baseline(
    "TD3",
    {
        "gamma": 0.98,
        "buffer_size": 200_000,
        "learning_starts": 10_000,
        "gradient_steps": 1,
        "train_freq": 1,
        "learning_rate": 1e-3,
        "policy_kwargs": {"net_arch": [400, 300]},
    },
    noise=0.1,
)

DQN_CARTPOLE = Baseline(
    "DQN",
    {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": fraction(0.16, 50_000),
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
)

DQN_LUNAR_LANDER = Baseline(
    "DQN",
    {
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": fraction(0.12, 100_000),
        "exploration_final_eps": 0.1,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
)
