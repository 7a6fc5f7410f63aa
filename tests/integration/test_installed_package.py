"""The package as a plain ``pip install`` installs it, used outside the checkout."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parent.parent.parent

#: On the machine of an environment only numpy is installed; other packages cannot be imported.
CLIENT_PROGRAM = """
import importlib.abc, sys

class OnlyNumpy(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {"relaax", "numpy"} and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, OnlyNumpy())
from relaax.client.rlx_client import Client, Failure
from relaax.client.connector import Backoff
import relaax
print(relaax.__file__)
"""

ALGORITHM_PROGRAM = """
from pathlib import Path
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.named_files import locate_algorithm
directory = locate_algorithm({"name": "da3c"}, Path("training.yaml"))
algorithm = load_algorithm(directory)
algorithm.Config({"action_size": 2, "state_size": [4]})
algorithm.BridgeControl()
print(directory)
"""


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it, from a copy of the tracked files."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        if (REPOSITORY / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name)
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps",
            "--target", target, source,
        ],
        check=True, timeout=240,
    )  # fmt: skip
    return target


def run_away_from_the_checkout(program: str, installed: Path, cwd: Path) -> str:
    completed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd, env={"PYTHONPATH": str(installed)}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def test_a_bundled_algorithm_is_found_by_its_name(installed: Path, tmp_path: Path):
    directory = run_away_from_the_checkout(ALGORITHM_PROGRAM, installed, tmp_path)
    assert Path(directory) == installed / "relaax" / "bundled_algorithms" / "da3c"


def test_the_client_needs_nothing_but_numpy(installed: Path, tmp_path: Path):
    where = run_away_from_the_checkout(CLIENT_PROGRAM, installed, tmp_path)
    assert Path(where) == installed / "relaax" / "__init__.py"


def texts_in(folder: Path) -> dict[str, str]:
    """The files of a folder by name, with any free ports in the place of those that they name."""
    files = [path for path in folder.iterdir() if path.is_file()]
    return {
        path.name: re.sub(r"localhost:\d+", "localhost:PORT", path.read_text()) for path in files
    }


def test_the_algorithm_to_start_from_is_in_the_package(installed: Path, tmp_path: Path):
    program = """
from pathlib import Path
from relaax.launcher.new_application import write_new_algorithm
print(*(path.name for path in write_new_algorithm(Path("mine"))))
"""
    names = run_away_from_the_checkout(program, installed, tmp_path).split()
    template = REPOSITORY / "relaax" / "launcher" / "algorithm_template"
    written = texts_in(tmp_path / "mine")
    assert sorted(names) == sorted(written)
    assert written == texts_in(template)


def test_generated_code_is_in_the_package(installed: Path):
    bridge = installed / "relaax" / "parameters"
    generated = {"bridge_pb2.py", "bridge_pb2.pyi", "bridge_pb2_grpc.py"}
    assert generated <= {path.name for path in bridge.iterdir()}
