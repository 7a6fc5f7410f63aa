"""Atari games for Stable-Baselines3, preprocessed as RELAAX's are."""

import sys
from functools import partial
from typing import Any

import gymnasium
from launch import REPOSITORY
from stable_baselines3.common.atari_wrappers import ClipRewardEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecTransposeImage,
)

sys.path.insert(0, str(REPOSITORY / "environments" / "OpenAI_Gym"))
from atari import AtariFactory

#: One process that steps a game after the other, or a process for each game.
GAMES: dict[str, Any] = {"dummy": DummyVecEnv, "subproc": SubprocVecEnv}

#: Frames that a network sees together.
_STACKED = 4


def stacked_games(env_id: str, count: int, kind: str = "dummy", seed: int | None = None) -> VecEnv:
    """Return games whose frames are stacked, and whose episodes are reported with their returns.

    Rewards are cut to -1, 0 and 1.
    """
    games = GAMES[kind]([partial(_framed_game, env_id)] * count)
    games.seed(seed)
    return VecTransposeImage(VecFrameStack(games, _STACKED))


def _framed_game(env_id: str) -> Any:
    """Return a game whose frames have the axis of channels that Stable-Baselines3 asks for."""
    game = AtariFactory(env_id, None, {})()
    space = gymnasium.spaces.Box(0, 255, (84, 84, 1), "uint8")
    framed = gymnasium.wrappers.TransformObservation(game, lambda frame: frame[..., None], space)
    return ClipRewardEnv(Monitor(framed))
