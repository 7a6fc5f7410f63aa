"""Atari games with the usual preprocessing, under Gymnasium's names and as ``relaax/Atari-v0``.

Machado et al., "Revisiting the Arcade Learning Environment", 2018, and Mnih et al., "Human-level
control through deep reinforcement learning", 2015: a frame is the maximum of the last two of four
emulated ones, grey, 84x84, ``uint8``; an episode starts with up to 30 idle actions and ends with
the game, not with a life. Stacking frames is the agent's job (``history_len``).
"""

from typing import Any

import gymnasium

from relaax.client.gymnasium_factory import Environment

FRAME_SIZE = 84
FRAME_SKIP = 4
MAX_IDLE_ACTIONS = 30

#: Of an environment that any game's name is given to: ``relaax.client.gymnasium_atari:ATARI_ID``.
ATARI_ID = "relaax/Atari-v0"


def prepare_libraries() -> None:
    """Import and set up ale-py and OpenCV, which nothing else here needs."""
    import ale_py
    import cv2

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    cv2.setNumThreads(0)


def atari_game(env_id: str, **kwargs: Any) -> Environment:
    """Return a game with frames ``uint8[84, 84]``; ``kwargs`` are those of ``gymnasium.make``."""
    prepare_libraries()
    # The wrapper skips frames, because it must see the last two to take their maximum.
    game = gymnasium.make(env_id, **{**kwargs, "frameskip": 1})
    return gymnasium.wrappers.AtariPreprocessing(
        game,
        noop_max=MAX_IDLE_ACTIONS,
        frame_skip=FRAME_SKIP,
        screen_size=FRAME_SIZE,
        terminal_on_life_loss=False,
        grayscale_obs=True,
        scale_obs=False,
    )


def named_game(
    game_name: str, full_action_space: bool = True, render_mode: str | None = None, **kwargs: Any
) -> Environment:
    """Return the game ``game_name``, with all 18 actions unless ``full_action_space`` is false."""
    return atari_game(
        game_name, full_action_space=full_action_space, render_mode=render_mode, **kwargs
    )


if ATARI_ID not in gymnasium.registry:
    gymnasium.register(ATARI_ID, entry_point=named_game)
