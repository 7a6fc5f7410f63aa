"""SRL's Atari example: the names of its page, and the processes that they describe."""

import re
from itertools import count
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import yaml
from processes import REPOSITORY
from trained import algorithm_of

from relaax.experiments.checks import mistakes
from relaax.experiments.files import load_experiment
from relaax.experiments.trial import ENVIRONMENT_TYPES, Trial
from relaax.experiments.written import to_yaml

EXAMPLE = REPOSITORY / "examples" / "experiments" / "atari.py"


def processes_of(file: Path, directory: Path) -> str:
    """The Procfile of a trial, whose ports are 1, 2, 3 and so on."""
    experiment = load_experiment(file, "example-atari")
    assert mistakes(experiment) == []
    numbers = count(1)
    return Trial(experiment, directory, lambda: next(numbers)).write().read_text()


def test_its_twin_in_yaml_starts_the_same_processes(tmp_path: Path) -> None:
    twin = tmp_path / "twin.yaml"
    twin.write_text(to_yaml(load_experiment(EXAMPLE, "example-atari")))
    of_python = processes_of(EXAMPLE, tmp_path / "trial")
    assert processes_of(twin, tmp_path / "trial") == of_python
    programs = re.findall(r" (relaax-[a-z-]+) --config", of_python)
    assert programs == [
        "relaax-parameter-server", "relaax-learner",
        "relaax-inference-server", "relaax-inference-server", "relaax-actor",
    ]  # fmt: skip
    section = yaml.safe_load((tmp_path / "trial" / "policies" / "default.yaml").read_text())[
        "algorithm"
    ]
    assert section.pop("name") == "mappo"
    network = algorithm_of("mappo", section)[1].network
    assert (network.observation_shape, network.lstm_size) == ((84, 84, 1), 256)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_type_atari_is_a_game_by_its_name_with_all_actions_and_grey_frames() -> None:
    made_by = ENVIRONMENT_TYPES["atari"]
    game = gymnasium.make(made_by, game_name="PongNoFrameskip-v4")
    assert game.action_space.n == 18
    frame, _ = game.reset(seed=1)
    assert (frame.shape, frame.dtype) == ((84, 84), np.uint8)
    up, down = 2, 5
    frames = [game.step(action)[0] for action in [up] * 10 + [down] * 20]
    assert any((after != frame).any() for after in frames)
    game.close()
    few = gymnasium.make(made_by, game_name="PongNoFrameskip-v4", full_action_space=False)
    assert few.action_space.n == 6
    few.close()
