"""The wheel of the project, installed by pip: two commands in an empty folder train CartPole."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from new_folders import output_at_the_end, train, use_free_ports
from processes import REPOSITORY
from programs import pip_finds_packages, skip_without

pytestmark = pytest.mark.integration


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The commands of a virtual environment in which the wheel alone was installed, by pip."""
    skip_without(pip_finds_packages(), "needs an index of packages for pip, such as PyPI")
    folder = tmp_path_factory.mktemp("wheel")
    commands = folder / "venv" / "bin"
    venv.create(folder / "venv", with_pip=True)
    subprocess.run(
        [commands / "pip", "install", "--quiet", f"{built_wheel(folder)}[environments]"],
        check=True, timeout=600,
    )  # fmt: skip
    yield commands
    shutil.rmtree(folder)  # TensorFlow is large, and pytest keeps what is here


def built_wheel(folder: Path) -> Path:
    """Return a wheel of the files that git would commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((REPOSITORY / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", folder, folder / "source"],
        check=True, capture_output=True, timeout=240,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.timeout(1200)  # most of it for pip
def test_the_wheel_trains_cartpole_in_an_empty_folder_with_two_commands(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.environ['PATH']}")  # as activate does
    monkeypatch.delenv("PYTHONPATH", raising=False)
    made = subprocess.run(
        ["relaax-new", "cartpole", "--gymnasium", "CartPole-v1"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "  cd cartpole\n  relaax-train\n" in made
    directory = tmp_path / "cartpole"
    use_free_ports(directory)
    said = output_at_the_end(train(directory, command=installed / "relaax-train"))
    assert "the mean return has reached its goal" in said
    assert str(REPOSITORY) not in said
