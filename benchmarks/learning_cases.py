"""The environments of learning.py, with RELAAX's configurations and PPO's settings."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launch import REPOSITORY

from relaax.server.common.configuration.yaml_reader import read_yaml

#: Of the environment in this folder; its name for Gymnasium begins with its module.
IMAGE_AND_VECTOR = "image_and_vector:ImageAndVector-v0"


def falling(initial: float, steps: int) -> Callable[[float], float]:
    """Return the Zoo's linear schedule over ``steps``, and a tenth of ``initial`` after them.

    It needs the steps that are given to ``learn`` to be ``MOST_STEPS``.
    """

    def at(left: float) -> float:
        done = (1 - left) * MOST_STEPS
        return initial * max(1 - done / steps, 0.1)

    return at


#: Given to ``learn``; a training is cut before that.
MOST_STEPS = 10_000_000


@dataclass(frozen=True)
class PPO:
    """Settings of Stable-Baselines3's PPO."""

    environments: int
    settings: dict[str, Any]
    policy: str = "MlpPolicy"
    #: Whether observations and rewards go through VecNormalize, with the same discount.
    normalize: bool = False
    #: Of PyTorch: one or two, whichever was faster on two cores.
    threads: int = 1


@dataclass(frozen=True)
class Case:
    """An environment, and how both programs train on it."""

    env_id: str
    #: In config/.
    config: str
    ppo: PPO
    #: Most that one training takes.
    seconds: float
    #: RELAAX's, and how many of them share a connection and a process.
    environments: int = 8
    per_connection: int = 8
    env_kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_atari(self) -> bool:
        """Whether it is a game of ale-py's."""
        return self.env_id.startswith("ALE/")

    @property
    def config_path(self) -> Path:
        """RELAAX's configuration."""
        return REPOSITORY / "config" / self.config

    @property
    def steps(self) -> int:
        """After how many steps a training is cut: those of the configuration."""
        return int(float(read_yaml(self.config_path)["algorithm"]["max_global_step"]))


_LUNAR_LANDER = PPO(
    16,
    {
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
)

PPO_ATARI = PPO(
    8,
    {
        "n_steps": 128,
        "n_epochs": 4,
        "batch_size": 256,
        "learning_rate": 2.5e-4,
        "clip_range": 0.1,
        "vf_coef": 0.5,
        "ent_coef": 0.01,
    },
    policy="CnnPolicy",
    threads=2,
)

#: By the names of ``--environments``. PPO's settings are those of RL Baselines3 Zoo
#: (hyperparams/ppo.yml): LunarLander-v2's and HalfCheetah-v3's, which are the latest that it has,
#: and Atari's, without a schedule; also for the image and the vector, which it does not know.
CASES: dict[str, Case] = {
    "cartpole": Case(
        "CartPole-v1",
        "da3c_cartpole_fast.yaml",
        PPO(
            8,
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
        ),
        seconds=60,
    ),
    "pendulum": Case(
        "Pendulum-v1",
        "da3c_cont_pendulum.yaml",
        PPO(
            4,
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
        ),
        seconds=120,
    ),
    "lunarlander": Case(
        "LunarLander-v3",
        "da3c_lunarlander.yaml",
        _LUNAR_LANDER,
        environments=16,
        per_connection=16,
        seconds=180,
    ),
    "lunarlander-continuous": Case(
        "LunarLander-v3",
        "da3c_cont_lunarlander.yaml",
        _LUNAR_LANDER,
        environments=16,
        per_connection=16,
        env_kwargs={"continuous": True},
        seconds=180,
    ),
    "bipedalwalker": Case(
        "BipedalWalker-v3",
        "da3c_cont_bipedalwalker.yaml",
        PPO(
            32,
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
            normalize=True,
        ),
        environments=16,
        seconds=360,
    ),
    "halfcheetah": Case(
        "HalfCheetah-v5",
        "da3c_cont_halfcheetah.yaml",
        PPO(
            1,
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
        ),
        seconds=480,
    ),
    "image-and-vector": Case(
        IMAGE_AND_VECTOR,
        "da3c_image_and_vector.yaml",
        replace(PPO_ATARI, policy="MultiInputPolicy"),
        seconds=120,
    ),
    "boxing": Case("ALE/Boxing-v5", "da3c_ale_boxing.yaml", PPO_ATARI, seconds=1800),
    "pong": Case("ALE/Pong-v5", "da3c_ale_pong.yaml", PPO_ATARI, seconds=1800),
}
