"""A package that is not the one that was locked is not installed, whatever index offers it."""

import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

NAME, MODULE = "relaax-parcel", "relaax_parcel"

#: Builds a wheel, by taking one that lies there.
BACKEND = """
import shutil
def build_wheel(folder, settings=None, metadata=None):
    return shutil.copy("built-1.0-py3-none-any.whl", folder).rpartition("/")[2]
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class Index:
    """An index of one package, and the lock file of what it offered first."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "simple" / NAME
        self._files.mkdir(parents=True)
        self._lock = folder / "lock.txt"
        self._folder = folder
        self.offer(BACKEND)
        digest = hashlib.sha256(self._wheel.read_bytes()).hexdigest()
        self._lock.write_text(f"{NAME}==1.0 --hash=sha256:{digest}\n")
        handler = partial(_Quiet, directory=str(folder))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def _wheel(self) -> Path:
        return self._files / f"{MODULE}-1.0-py3-none-any.whl"

    def offer(self, program: str) -> None:
        """Offer a package with this program, always under the same version."""
        write_wheel(self._wheel, NAME, program)

    def install(self) -> subprocess.CompletedProcess[str]:
        """Install as the Makefile does."""
        locked = ("--require-hashes", "--only-binary", ":all:", "-r", str(self._lock))
        return self._pip("install", "--target", str(self._folder / "target"), *locked)

    def build(self) -> subprocess.CompletedProcess[str]:
        """Build a package that needs that of the index for it."""
        project = self._folder / "project"
        project.mkdir()
        (project / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["{NAME}"]\nbuild-backend = "{MODULE}"\n'
        )
        write_wheel(project / "built-1.0-py3-none-any.whl", "built", "")
        return self._pip(
            "wheel", "--no-deps", "--build-constraint", str(self._lock),
            "--wheel-dir", str(self._folder), str(project),
        )  # fmt: skip

    def _pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        return subprocess.run(
            [sys.executable, "-m", "pip", "--no-cache-dir", "--retries", "0", *arguments],
            env={
                **own,
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_INDEX_URL": f"http://127.0.0.1:{self.server.server_port}/simple",
            },
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip


def write_wheel(path: Path, name: str, program: str) -> None:
    module = name.replace("-", "_")
    files = {
        f"{module}.py": program,
        f"{module}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{module}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{module}-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in files.items():
            wheel.writestr(each, text)


@pytest.fixture(name="index")
def _index(tmp_path: Path) -> Iterator[Index]:
    index = Index(tmp_path)
    thread = threading.Thread(target=index.server.serve_forever)
    thread.start()
    yield index
    index.server.shutdown()
    thread.join()
    index.server.server_close()


def test_what_is_locked_is_installed_of_an_index_of_ones_own(index: Index) -> None:
    for done in (index.install(), index.build()):
        assert done.returncode == 0, done.stderr


def test_a_changed_file_is_not_installed_and_does_not_run_in_a_build(
    index: Index, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    index.offer(f"{BACKEND}\nopen({str(ran)!r}, 'w')\n")
    for done in (index.install(), index.build()):
        assert done.returncode == 1
        assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "target").exists()
    assert not ran.exists()
