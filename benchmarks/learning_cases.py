"""The environments of learning.py, with RELAAX's configurations and what they are compared with."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from curves import EPISODES
from launch import REPOSITORY
from zoo_settings import (
    DQN_CARTPOLE,
    DQN_LUNAR_LANDER,
    PPO_ATARI,
    PPO_BIPEDAL_WALKER,
    PPO_CARTPOLE,
    PPO_HALF_CHEETAH,
    PPO_IMAGE_AND_VECTOR,
    PPO_LUNAR_LANDER,
    PPO_PENDULUM,
    SAC_HALF_CHEETAH,
    SAC_PENDULUM,
    TD3_PENDULUM,
    Baseline,
)

from relaax.configuration.yaml_reader import read_yaml

#: Of the environment in this folder; its name for Gymnasium begins with its module.
IMAGE_AND_VECTOR = "image_and_vector:ImageAndVector-v0"

#: Options of a learner that a measurement gives itself.
_OF_PLACES = ("--bind", "--parameter-server", "--checkpoint-dir")


@dataclass(frozen=True)
class Case:
    """An environment, and how both programs train on it."""

    env_id: str
    #: In config/.
    config: str
    baseline: Baseline
    #: Most that one training takes.
    seconds: float
    #: RELAAX's, and how many of them share a connection and a process.
    environments: int = 8
    per_connection: int = 8
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    #: A return of the training is the mean of so many episodes.
    episodes: int = EPISODES
    #: What was learnt is evaluated for so many episodes at the end.
    evaluation_episodes: int = 0

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

    @property
    def learner_options(self) -> dict[str, Any] | None:
        """The learner's options but for addresses and places, by name without dashes.

        None where there is no learner.
        """
        section = read_yaml(self.config_path).get("relaax-learner")
        if section is None:
            return None
        chosen = {key: value for key, value in section.items() if key not in _OF_PLACES}
        return {key.removeprefix("--"): value for key, value in chosen.items()}


#: Most of these make much of few steps: four clients, and an evaluation, since a training of a
#: hundred episodes has no hundred good ones.
_with_learner = partial(
    Case, seconds=900, environments=4, per_connection=1, episodes=10, evaluation_episodes=100
)

_ALL = {
    "cartpole": Case("CartPole-v1", "da3c_cartpole_fast.yaml", PPO_CARTPOLE, seconds=60),
    "pendulum": Case("Pendulum-v1", "da3c_cont_pendulum.yaml", PPO_PENDULUM, seconds=120),
    "lunarlander": Case(
        "LunarLander-v3",
        "da3c_lunarlander.yaml",
        PPO_LUNAR_LANDER,
        environments=16,
        per_connection=16,
        seconds=180,
    ),
    "lunarlander-continuous": Case(
        "LunarLander-v3",
        "da3c_cont_lunarlander.yaml",
        PPO_LUNAR_LANDER,
        environments=16,
        per_connection=16,
        env_kwargs={"continuous": True},
        seconds=180,
    ),
    "bipedalwalker": Case(
        "BipedalWalker-v3",
        "da3cc_gym_walker.yaml",
        PPO_BIPEDAL_WALKER,
        environments=16,
        seconds=360,
    ),
    "halfcheetah": Case(
        "HalfCheetah-v5", "da3c_cont_halfcheetah.yaml", PPO_HALF_CHEETAH, seconds=480
    ),
    "image-and-vector": Case(
        IMAGE_AND_VECTOR, "da3c_image_and_vector.yaml", PPO_IMAGE_AND_VECTOR, seconds=120
    ),
    "boxing": Case("ALE/Boxing-v5", "da3c_ale_boxing.yaml", PPO_ATARI, seconds=1800),
    "pong": Case("ALE/Pong-v5", "da3c_ale_pong.yaml", PPO_ATARI, seconds=1800),
    "sac_pendulum": _with_learner("Pendulum-v1", "sac_pendulum.yaml", SAC_PENDULUM),
    "td3_pendulum": _with_learner("Pendulum-v1", "td3_pendulum.yaml", TD3_PENDULUM),
    "dqn_cartpole": _with_learner("CartPole-v1", "dqn_cartpole.yaml", DQN_CARTPOLE),
    "dqn_lunarlander": _with_learner("LunarLander-v3", "dqn_lunarlander.yaml", DQN_LUNAR_LANDER),
    "sac_halfcheetah": _with_learner("HalfCheetah-v5", "sac_halfcheetah.yaml", SAC_HALF_CHEETAH),
    "ppo_halfcheetah": _with_learner("HalfCheetah-v5", "ppo_halfcheetah.yaml", PPO_HALF_CHEETAH),
}

#: By the names of ``--environments``: those whose configuration this checkout has.
CASES: dict[str, Case] = {name: case for name, case in _ALL.items() if case.config_path.is_file()}
