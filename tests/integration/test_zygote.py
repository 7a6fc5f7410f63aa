"""A program that is forked is the same as one that is started, but for the time that it takes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import COMMANDS, DEADLINE_S, REPOSITORY, wait_for
from zygote import ForkedProgram, can_fork, zygote

pytestmark = pytest.mark.integration

#: Says what a program can know of how it was started.
SAYS = """
import json, os, signal, sys, threading
said = {
    "arguments": sys.argv, "main": __name__, "file": __file__, "path": sys.path[0],
    "directory": os.getcwd(), "environment": dict(os.environ), "session": os.getsid(0),
    "group": os.getpgrp(), "files": sorted(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(), "buffers": sys.stdout.line_buffering,
    "handlers": [str(signal.getsignal(number)) for number in (2, 13, 15, 17)],
}
print(json.dumps(said))
print("an error", file=sys.stderr)
"""

ENDS = {
    "returns": "",
    "exits with a status": "sys.exit(3)",
    "exits with a text": "sys.exit('why')",
    "raises": "raise ValueError('why')",
    "ends at once": "os._exit(4)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "ends by a signal": "os.kill(os.getpid(), signal.SIGTERM)",
    "is interrupted": "os.kill(os.getpid(), signal.SIGINT); signal.pause()",
    "leaves a thread": "import time; threading.Thread(target=lambda: print('late')).start()",
}


def run(how: str, program: Path, directory: Path) -> tuple[int, str]:
    """Return the exit status and the output of a program, which is forked or started."""
    arguments = [str(program), "--first", "a b", ""]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OF_THIS_TEST": "1"}
    output = directory / "output"
    with output.open("wb") as file:
        if how == "forked":
            process: ForkedProgram | subprocess.Popen[bytes] = zygote().start(
                arguments, directory, environment, file.fileno()
            )
        else:
            process = subprocess.Popen(
                [sys.executable, *arguments], cwd=directory, env=environment,
                stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
    return process.wait(DEADLINE_S), output.read_text()


@pytest.mark.parametrize("end", ENDS)
def test_a_forked_program_sees_and_says_and_ends_as_a_started_one(tmp_path: Path, end: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(SAYS + ENDS[end])
    forked, started = run("forked", program, tmp_path), run("started", program, tmp_path)
    assert json.loads(forked[1].splitlines()[0]) == json.loads(started[1].splitlines()[0])
    assert forked[0] == started[0]
    assert last_lines(forked[1]) == last_lines(started[1])


def last_lines(output: str) -> list[str]:
    """Return what was said last, without the calls that a traceback names."""
    return [line for line in output.splitlines()[1:] if not line.startswith("  ")]


def test_a_forked_program_can_be_signalled_waited_for_and_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import signal\nprint('begun')\nsignal.pause()\n")
    with (tmp_path / "output").open("wb") as output:
        processes = [
            zygote().start([str(program)], tmp_path, os.environ, output.fileno()) for _ in range(2)
        ]
    wait_for(lambda: (tmp_path / "output").read_text().count("begun") == 2, "the beginning")
    first, second = processes
    assert first.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(0.01)
    first.send_signal(signal.SIGTERM)
    assert first.wait(DEADLINE_S) == -signal.SIGTERM
    second.kill()
    assert second.wait(DEADLINE_S) == second.poll() == -signal.SIGKILL
    first.kill()  # it is gone: nothing else may be hit


def test_only_programs_of_the_project_are_forked_and_not_where_a_start_reads_what_was_set() -> None:
    server = [str(COMMANDS / "relaax-rlx-server"), "--help"]
    assert can_fork(server, os.environ)
    assert can_fork([sys.executable, "-m", "relaax.client.gymnasium_runner"], os.environ)
    assert not can_fork([sys.executable, str(REPOSITORY / "environments" / "x")], os.environ)
    assert not can_fork([sys.executable, "-c", "pass"], os.environ)
    assert not can_fork(["sh", "-c", "exit 1"], os.environ)
    assert can_fork(["/sbin/ip", "netns", "exec", "machine", *server], os.environ)
    assert not can_fork(["/sbin/ip", "netns", "exec", "machine", "sh"], os.environ)
    assert can_fork(server, {**os.environ, "LD_LIBRARY_PATH": "/as/opencv/sets/it"})
    for name in ("PYTHONPATH", "LD_PRELOAD", "TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        assert not can_fork(server, {**os.environ, name: "2"})
