"""Run with pytest: the environment is trained for a short while, in one process.

pytest test_environment.py
"""

import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
STEPS = 2000

#: The training takes a few seconds; one that hangs must not keep the test waiting.
DEADLINE_S = 600


def test_a_short_training_takes_the_environments_states_and_rewards(tmp_path: Path) -> None:
    """A copy is trained, so that the checkpoints in this folder stay as they are."""
    copy = tmp_path / "copy"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("training", "__pycache__"))
    command = [sys.executable, "-m", "relaax.launcher.main", "--serial"]
    done = subprocess.run(  # noqa: S603 - the program is this Python
        [*command, "--steps", str(STEPS)],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said  # noqa: S101
    assert list((copy / "training" / "checkpoints").glob("cp-*.json")), said  # noqa: S101
