"""Checkpoints of trained policies of every algorithm: their parameters are random numbers."""

from pathlib import Path
from typing import Any

import numpy as np
from processes import REPOSITORY

from relaax.algorithm_base import Checkpoint, ConfigBase, NullMetrics, Saver
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm

DISCRETE = {"state_size": [4], "action_size": 3, "hidden_layers": [16], "seed": 1}
CONTINUOUS = {**DISCRETE, "action_size": 2, "action_low": -2, "action_high": [1, 3]}

#: By algorithm: its section, for vectors of four numbers.
SECTIONS: dict[str, dict[str, Any]] = {
    "acer": {**CONTINUOUS, "continuous": True},
    "cem": DISCRETE,
    "da3c": DISCRETE,
    "da3c_cont": {**CONTINUOUS, "lstm": True},
    "ddpg": CONTINUOUS,
    "dqn": DISCRETE,
    "es": CONTINUOUS | {"continuous": True},
    "impala": DISCRETE,
    "mappo": DISCRETE | {"hidden_layers": [32, 32]},
    "ppo": {**CONTINUOUS, "continuous": True, "filter_states": True},
    "qmix": DISCRETE | {"action_size": [3, 3]},
    "r2d2": DISCRETE,
    "sac": CONTINUOUS,
    "trpo": DISCRETE,
    "unreal": {  # without the previous action, so that it is exported
        "state_size": [4], "action_size": 3, "seed": 1, "pixel_control": False,
        "network": [{"dense": 16}],
    },
}  # fmt: skip

#: Algorithms whose policies are without noise: candidates differ by their parameters.
DRAW_NOTHING = ("cem", "es")


def section_of(name: str, section: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the ``algorithm:`` section of a YAML file."""
    return {"path": str(REPOSITORY / "algorithms" / name), **(section or SECTIONS[name])}


def algorithm_of(name: str, section: dict[str, Any]) -> tuple[Algorithm, ConfigBase]:
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    return algorithm, algorithm.Config(section)


class _Kept(Saver):
    """Keeps the checkpoint of a parameter server that has learnt nothing."""

    def save(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    def restore_latest(self) -> Checkpoint | None:
        return None

    def location(self) -> str:
        return "nowhere"


def save_trained(
    name: str,
    directory: Path,
    section: dict[str, Any] | None = None,
    step: int = 1234,
    seed: int = 1,
) -> np.ndarray:
    """Save a checkpoint of an algorithm at ``step``; return its parameters.

    They are large enough that actions depend on states. Filters of states have seen some.
    """
    algorithm, config = algorithm_of(name, section or SECTIONS[name])
    kept = _Kept()
    algorithm.ParameterServer(config, kept, NullMetrics()).save_checkpoint()
    blank = kept.checkpoint
    random = np.random.default_rng(seed)
    parameters = random.normal(0, 0.2, blank.tensors["parameters"].shape).astype(np.float32)
    if name in DRAW_NOTHING:  # the numbers behind say what candidates are made of
        size = config.network.manifest.size
        parameters[size:] = blank.tensors["parameters"][size:]
    if hasattr(config, "filters"):
        filtering = sum(each.length for each in config.filters().states.values())
        if filtering:  # counts, means and deviations
            parameters[-filtering:] = random.uniform(2, 5, filtering)
    CheckpointSaver(DirectoryStore(directory), keep=5).save(
        Checkpoint({**blank.tensors, "parameters": parameters}, step, 7, blank.fingerprint)
    )
    return parameters
