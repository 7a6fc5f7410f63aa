"""Two processes do not save to one directory."""

import os
import signal
import subprocess
import sys

import pytest

from relaax.errors import ConfigurationError
from relaax.processes.directory_lock import owned

#: Owns the directory until it is killed.
OWNER = """if True:
    import sys, threading
    from pathlib import Path
    from relaax.processes.directory_lock import owned
    with owned(Path(sys.argv[1]), "relaax-parameter-server"):
        print("owned", flush=True)
        threading.Event().wait()
"""


@pytest.fixture(name="other")
def _other(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "owned\n"
        yield process
        process.kill()


def test_the_owner_is_named(tmp_path, other):
    with pytest.raises(ConfigurationError) as refused, owned(tmp_path, "another", wait_s=0.2):
        pass
    said = f"{tmp_path} is in use by relaax-parameter-server (pid {other.pid} on "
    assert str(refused.value).startswith(said)


def test_the_lock_of_a_killed_process_is_free(tmp_path, other):
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    with owned(tmp_path, "the next", wait_s=0.0):
        assert "the next" in (tmp_path / "lock").read_text()


def test_an_ending_owner_is_waited_for(tmp_path, other):
    other.terminate()
    with owned(tmp_path, "the next", wait_s=20):
        pass


def test_it_is_free_after_the_block_and_the_directory_is_made(tmp_path):
    for _ in range(2):
        with owned(tmp_path / "a" / "b", "one"):
            pass
    assert (tmp_path / "a" / "b" / "lock").read_text() == ""


def test_without_a_directory_nothing_is_locked():
    with owned(None, "one"), owned(None, "two"):
        pass


def test_a_file_in_its_place_is_an_error_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigurationError, match="cannot use the directory"),
        owned(tmp_path / "file", "one"),
    ):
        pass
