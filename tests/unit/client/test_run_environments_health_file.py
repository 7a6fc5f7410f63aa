"""The file that says that environments are well."""

import os
import shutil
from pathlib import Path

import pytest

from relaax.client.run_environments import HealthFile
from relaax.client.run_progress import RunProgress
from relaax.errors import ConfigurationError


class Run:
    """A run, its clock and its file, whose age is set back before each look."""

    def __init__(self, path: Path) -> None:
        self.progress = RunProgress(2)
        self._now = 0.0
        self._path = path
        self._file = HealthFile(path, clock=lambda: self._now)

    def is_touched(self, after_s: float = 1.0) -> bool:
        os.utime(self._path, (0, 0))
        self._now += after_s
        self._file.refresh(self.progress)
        return self._path.stat().st_mtime > 0


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Run:
    return Run(tmp_path / "health")


def test_it_is_touched_while_environments_wait_for_a_server(run: Run):
    assert run.is_touched()
    assert run.is_touched()


def test_it_is_touched_while_connected_environments_make_steps(run: Run):
    run.progress.connected = 1
    run.progress.steps = 10
    assert run.is_touched()
    assert not run.is_touched()
    run.progress.steps = 11
    assert run.is_touched()


def test_it_is_touched_once_a_second_at_most(run: Run):
    assert not run.is_touched(after_s=0.4)
    assert run.is_touched(after_s=0.6)


def test_it_is_there_from_the_beginning(tmp_path: Path):
    Run(tmp_path / "health")
    assert (tmp_path / "health").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"--health-file .*/no/health cannot be written"):
        HealthFile(tmp_path / "no" / "health")


def test_a_file_that_cannot_be_touched_any_more_is_a_warning_and_no_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    now = iter(range(100))
    (tmp_path / "full").mkdir()
    file = HealthFile(tmp_path / "full" / "health", clock=lambda: next(now))
    shutil.rmtree(tmp_path / "full")
    for _ in range(10):
        file.refresh(RunProgress(1))
    (warning,) = [record.message for record in caplog.records]
    assert "health cannot be touched any more: " in warning
    (tmp_path / "full").mkdir()
    for _ in range(10):
        file.refresh(RunProgress(1))
    assert (tmp_path / "full" / "health").exists()
