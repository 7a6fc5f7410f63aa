"""A process of a Procfile that a part of a cluster runs on its machine."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import wait_for

from relaax.launcher.engines.hosted import Hosted
from relaax.launcher.engines.hosted_program import CANNOT_START, Run

pytestmark = pytest.mark.integration

#: The child of a shell says that it is ready: one that is not has its parent's trap for a moment.
READY = "sh -c 'echo ready; exec sleep 60' & wait"


def run(command: str, directory: Path) -> Run:
    return Run(command, str(directory), {"RELAAX_COPY": "2"}, 10.0)


def ended(hosted: Hosted) -> tuple[list[bytes], int]:
    """All that is printed, and the status."""
    lines: list[bytes] = []
    for _ in range(60):
        more, status = hosted.output()
        lines += more
        if status is not None:
            return lines, status
    raise AssertionError("it did not end")


def test_output_and_status_come(tmp_path: Path):
    hosted = Hosted()
    assert hosted.start(run("echo $RELAAX_COPY; pwd >&2; exit 3", tmp_path)) > 0
    assert ended(hosted) == ([b"2\n", f"{tmp_path}\n".encode()], 3)
    hosted.start(run("echo again", tmp_path))
    assert ended(hosted) == ([b"again\n"], 0)


def test_a_command_that_ends_in_the_middle_of_a_line_has_said_it(tmp_path: Path):
    hosted = Hosted()
    hosted.start(run("printf '#status 7\\nhalf'", tmp_path))
    assert ended(hosted) == ([b"#status 7\n", b"half\n"], 0)


def test_a_program_that_runs_it_elsewhere_is_passed_through(tmp_path: Path):
    hosted = Hosted(through=["sh", "-c", 'echo waiting; exec "$@"', "sh"])
    assert hosted.start(run(f"trap 'exit 5' TERM; {READY}", tmp_path)) > 0
    wait_for(lambda: b"ready\n" in hosted.output()[0], "the command being ready")
    hosted.signal(signal.SIGTERM)
    assert ended(hosted) == ([], 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_has_not_begun_it_elsewhere_is_ended(tmp_path: Path, number: int):
    hosted = Hosted(through=["sh", "-c", "echo queued; exec sleep 60"])
    hosted.start(run("echo never", tmp_path))
    wait_for(lambda: b"queued\n" in hosted.output()[0], "the program being there")
    hosted.signal(number)
    assert ended(hosted) == ([], CANNOT_START)


def test_a_program_that_cannot_run_it_elsewhere_is_heard(tmp_path: Path):
    hosted = Hosted(through=["sh", "-c", "echo no such node >&2"])
    hosted.start(run("echo never", tmp_path))
    assert ended(hosted) == ([b"no such node\n"], CANNOT_START)


def test_a_signal_reaches_the_command_and_what_it_has_started(tmp_path: Path):
    hosted = Hosted()
    hosted.start(run(f"trap 'echo saved; exit 0' TERM; {READY}", tmp_path))
    wait_for(lambda: b"ready\n" in hosted.output()[0], "the command being ready")
    hosted.signal(signal.SIGTERM)
    lines, status = ended(hosted)
    assert (b"saved\n" in lines, status) == (True, 0)


def test_a_signal_that_ends_it_is_the_status(tmp_path: Path):
    hosted = Hosted()
    hosted.start(run("exec sleep 60", tmp_path))
    hosted.signal(signal.SIGKILL)
    assert ended(hosted) == ([], -signal.SIGKILL)


def test_a_folder_that_is_not_on_this_machine_is_named(tmp_path: Path):
    hosted = Hosted()
    assert hosted.start(run("echo never", tmp_path / "other")) == 0
    lines, status = ended(hosted)
    assert status == CANNOT_START
    assert lines == [f"there is no directory {tmp_path / 'other'} on this machine\n".encode()]


def test_it_saves_and_ends_when_the_one_who_runs_it_is_killed(tmp_path: Path):
    """Even one that kills its children and its group at its end, as Ray's processes do."""
    program = f"""
import os, psutil, signal, time
from relaax.launcher.engines.hosted import Hosted
from relaax.launcher.engines.hosted_program import Run
hosted = Hosted(detached=True)
command = "trap 'sleep 1; touch saved; exit' TERM; echo $$ > pid; while true; do sleep 0.1; done"
print(hosted.start(Run(command, {str(tmp_path)!r}, {{}}, 10.0)))
while not os.path.exists({str(tmp_path / "pid")!r}):
    time.sleep(0.01)
for child in psutil.Process().children():
    child.kill()
os.killpg(0, signal.SIGKILL)
"""
    killed = subprocess.run(
        [sys.executable, "-c", program],
        timeout=60, check=False, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not psutil.pid_exists(pid), "the end of the command")
    assert (tmp_path / "saved").exists()
