"""Checkpoints of known content, and looks at the directory that holds them."""

from pathlib import Path

import numpy as np

from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.checkpoints import CheckpointSaver, DirectoryStore, Restore

FINGERPRINT = {
    "algorithm": "da3c",
    "layers": [[16, 8, 4], [32, 4, 2]],
    "learning_rate": 0.1 + 0.2,
    "entropy_beta": 1e-300,
    "lstm": False,
    "seed": 2**70,
    "activation": None,
    "name": "Ünïcode \u0000",
}


def checkpoint(global_t: int, value: float | None = None) -> Checkpoint:
    fill = float(global_t) if value is None else value
    return Checkpoint(
        tensors={"w": np.full((3, 4), fill, np.float32), "slots/ms": np.arange(5.0)},
        global_t=global_t,
        version=global_t * 2,
        fingerprint=FINGERPRINT,
    )


def saver(
    directory: Path, keep: int = 5, keep_best: int = 0, restore: str = "latest"
) -> CheckpointSaver:
    return CheckpointSaver(DirectoryStore(directory), keep, keep_best, Restore.parse(restore))


def data_file(directory: Path, global_t: int) -> Path:
    (path,) = directory.glob(f"cp-{global_t}.*.safetensors")
    return path


def restored_step(directory: Path) -> int | None:
    found = saver(directory).restore_latest()
    if found is None:
        return None
    np.testing.assert_array_equal(found.tensors["w"], np.full((3, 4), found.global_t, np.float32))
    return found.global_t


def steps(directory: Path) -> list[int]:
    names = [path.name[3:-5] for path in directory.glob("cp-*.json")]
    return sorted(int(name) for name in names if not name.endswith(".score"))
