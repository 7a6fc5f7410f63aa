"""``relaax-train``: the processes of a Procfile, and one live line."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import COMMANDS

TRAIN = COMMANDS / "relaax-train"

#: Says that it runs, and ends with status 0 when it is asked to.
OBEDIENT = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
pathlib.Path(__file__).with_suffix(".ready").touch()
time.sleep(60)
"""

#: Ends with status 3 when the process named "other" is ready.
IMPATIENT = """
import pathlib, time
while not pathlib.Path(__file__).with_name("other.ready").exists():
    time.sleep(0.01)
raise SystemExit(3)
"""


@pytest.fixture(name="procfile")
def _procfile(tmp_path: Path):
    def write(**programs: str) -> Path:
        lines = []
        for name, program in programs.items():
            script = tmp_path / f"{name}.py"
            script.write_text(program)
            lines.append(f"{name}: exec {sys.executable} {script}\n")
        path = tmp_path / "Procfile"
        path.write_text("".join(lines))
        return path

    return write


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TRAIN, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_first_process_to_end_gives_the_status_and_the_others_are_stopped(procfile):
    completed = run(procfile(first=IMPATIENT, other=OBEDIENT))
    assert completed.returncode == 3
    assert "other  | ready" in completed.stdout
    assert "other  | saved" in completed.stdout


def test_progress_without_a_terminal_is_a_line_like_others(procfile):
    completed = run(procfile(ps="print('training: step 1'); print('training: step 2')"))
    assert "ps     | training: step 1" in completed.stdout
    assert "ps     | training: step 2" in completed.stdout


def test_progress_on_a_terminal_stays_in_one_line_below_the_log(procfile):
    path = procfile(ps="for n in range(3): print(f'training: step {n}')\nprint('a warning')")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([TRAIN, path], stdout=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:
        pass  # Linux says EIO when the other end of a terminal is closed
    os.close(ours)
    assert process.wait(60) == 0
    assert b"a warning\r\n" in shown
    assert b"training: step 2" in shown
    assert b"| training:" not in shown
    assert b"\x1b[2K" in shown  # the line is erased before it is drawn anew


def test_ctrl_c_gives_every_process_time_to_save(procfile):
    process = subprocess.Popen(
        [TRAIN, procfile(one=OBEDIENT, two=OBEDIENT)], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    said = ""
    while said.count("ready") < 2:
        said += process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    process.stdout.close()
    assert rest.count("saved") == 2
    assert process.wait(60) == 130


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot read"), ("", "names no process"), ("# x\n", "no process")],
)
def test_a_procfile_that_cannot_be_used_is_named(tmp_path: Path, content, reason):
    path = tmp_path / "Procfile"
    if content is not None:
        path.write_text(content)
    completed = run(path)
    assert completed.returncode == 2
    assert reason in completed.stderr.splitlines()[-1]
    assert str(path) in completed.stderr.splitlines()[-1]
