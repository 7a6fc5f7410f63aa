"""What a player that is told where the monster stands reaches in ViZDoom's scenario basic.

    python benchmarks/vizdoom_reference.py --episodes 200

It moves towards the monster and shoots when that is in front of it, with the frame skip that
trainings have: a mark to hold their returns against.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import vizdoom

FRAME_SKIP = 4
WIDTH = 320
#: The monster is hit when its middle is not farther from the picture's.
NEAR_PIXELS = 12

LEFT, RIGHT, SHOOT = [1, 0, 0], [0, 1, 0], [0, 0, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    game = vizdoom.DoomGame()
    game.load_config(str(Path(vizdoom.scenarios_path) / "basic.cfg"))
    game.set_window_visible(False)
    game.set_labels_buffer_enabled(True)
    game.set_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        game.set_doom_config_path(str(Path(folder) / "vizdoom.ini"))
        game.init()
        returns = [played(game) for _ in range(arguments.episodes)]
        game.close()
    error = np.std(returns) / len(returns) ** 0.5
    print(
        f"a player that sees the monster: mean return {np.mean(returns):.1f}, standard error "
        f"{error:.1f}, from {min(returns):.0f} to {max(returns):.0f}, {len(returns)} episodes"
    )


def played(game: Any) -> float:
    game.new_episode()
    while not game.is_episode_finished():
        game.make_action(move(game.get_state().labels), FRAME_SKIP)
    return float(game.get_total_reward())


def move(labels: Any) -> list[int]:
    others = ("DoomPlayer", "BulletPuff", "Blood")
    monsters = [label for label in labels if label.object_name not in others]
    if not monsters:
        return SHOOT
    offset = monsters[0].x + monsters[0].width / 2 - WIDTH / 2
    if abs(offset) < NEAR_PIXELS:
        return SHOOT
    return LEFT if offset < 0 else RIGHT


if __name__ == "__main__":
    main()
