"""An experiment trains, from Python and from its twin in YAML, with policies here and elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import REPOSITORY, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

EXAMPLES = REPOSITORY / "examples" / "experiments"
EXAMPLE = EXAMPLES / "cartpole.py"


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


def test_a_trial_is_seen_and_ended_by_another_shell(tmp_path: Path) -> None:
    names = ("-e", "cartpole", "-f", "one")
    assert "no trial cartpole/one was run" in command(tmp_path, "status", *names).stderr
    programs = Path(sys.executable).parent
    with subprocess.Popen(
        [programs / "relaax-experiment", "run", str(EXAMPLE), *names],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            status = wait_for(
                lambda: (
                    (found := command(tmp_path, "status", *names)).returncode == 0
                    and "training: step" in found.stdout
                    and found.stdout
                ),
                "progress",
                120,
            )
            assert {line.split()[0] for line in status.splitlines()[2:]} == {
                "default-ps", "default-trainer0", "actors0",
            }  # fmt: skip
            pid = int(next(line for line in status.splitlines() if "default-ps" in line).split()[2])
            assert psutil.Process(pid).environ()["CUDA_VISIBLE_DEVICES"] == ""
            again = command(tmp_path, "run", str(EXAMPLE), *names)
            assert again.returncode == 2
            assert f"is in use by relaax-experiment run (pid {run.pid} on" in again.stderr
            stopped = command(tmp_path, "stop", *names)
            assert stopped.returncode == 0, stopped.stderr
            assert "cartpole/one ended with status 143" in stopped.stdout
            assert "default-ps        ended with status 0" in stopped.stdout
            assert run.wait(10) == 143
        finally:
            run.terminate()
    assert command(tmp_path, "status", *names).returncode == 3
    lines = command(tmp_path, "logs", *names, "-n", "2", "default-ps").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["default-ps"] * 2
    nothing = command(tmp_path, "stop", *names)
    assert nothing.returncode == 2
    assert "cartpole/one does not run: it ended with status 143" in nothing.stderr


def test_players_learn_policies_of_their_own(tmp_path: Path) -> None:
    shown = command(tmp_path, "show", str(EXAMPLES / "tictactoe.py"))
    twin = tmp_path / "twin.yaml"
    twin.write_text(shown.stdout.replace("100000", "1500"))
    ended = command(tmp_path, "run", str(twin))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    place = tmp_path / "training" / "experiments" / "tictactoe" / "trial1"
    for player in ("player_1", "player_2"):
        assert any((place / player / "checkpoints").iterdir())
