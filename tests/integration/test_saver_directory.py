"""A process that saves checkpoints in a directory is killed at any instant."""

import logging
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from relaax.checkpoints import CheckpointSaver, DirectoryStore

pytestmark = pytest.mark.integration

WRITER = """
import itertools, sys
from pathlib import Path
import numpy as np
from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.checkpoints import CheckpointSaver, DirectoryStore

saver = CheckpointSaver(DirectoryStore(Path(sys.argv[1])), keep=2)
found = saver.restore_latest()
for step in itertools.count(found.global_t + 1 if found else 1):
    tensors = {name: np.full(100_000, step, np.float32) for name in ("w", "ms")}
    saver.save(Checkpoint(tensors, step, step, {"algorithm": "test"}))
    print(step, flush=True)
"""


def run_and_kill(directory: Path, chance: random.Random) -> int:
    """Kill a writer at a random instant; return the last step that it reported as saved."""
    command = [sys.executable, "-c", WRITER, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(chance.randint(1, 4)):
            reported = int(writer.stdout.readline())
        time.sleep(chance.uniform(0, 0.03))  # picks the instant; nothing depends on it
        writer.send_signal(signal.SIGKILL)
        # The pipe still holds the lines between the last one read and the kill.
        rest = writer.stdout.read()
    return max([reported, *map(int, rest.split())])


def test_after_every_sigkill_the_last_saved_checkpoint_loads(tmp_path, caplog):
    chance = random.Random()
    latest = 0
    for _ in range(5):
        reported = run_and_kill(tmp_path, chance)
        found = CheckpointSaver(DirectoryStore(tmp_path)).restore_latest()
        assert found is not None
        assert found.global_t > latest
        assert found.global_t >= reported
        for tensor in found.tensors.values():
            np.testing.assert_array_equal(tensor, np.full(100_000, found.global_t))
        latest = found.global_t
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert not list(tmp_path.glob(".tmp-*"))
