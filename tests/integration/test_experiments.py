"""An experiment trains, from Python and from its twin in YAML, with policies here and elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import REPOSITORY

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

EXAMPLE = REPOSITORY / "examples" / "experiments" / "cartpole.py"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run relaax-experiment in a folder to its end."""
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [programs / "relaax-experiment", *words],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("name", ["cartpole", "cartpole-remote"])
def test_a_trial_trains_to_its_end(tmp_path: Path, name: str) -> None:
    shown = command(tmp_path, "show", str(EXAMPLE), "-e", name)
    assert "max_global_step: 60000" in shown.stdout
    twin = tmp_path / "twin.yaml"
    twin.write_text(shown.stdout.replace("60000", "1500").replace("count: 4", "count: 2"))
    ended = command(tmp_path, "run", str(twin), "-f", "one")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    place = tmp_path / "training" / "experiments" / name / "one"
    assert command(tmp_path, "show", str(place / "experiment.yaml")).stdout == twin.read_text()
    assert any((place / "default" / "checkpoints").iterdir())
