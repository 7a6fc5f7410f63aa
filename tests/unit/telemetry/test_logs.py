"""The format of the servers' log."""

import os
import re
import subprocess
import sys

from relaax.telemetry.live_lines import ASKED_BY

PROGRAM = """
import logging, os
from relaax.telemetry.logs import start_logging
logging.basicConfig(level="DEBUG", format="%(message)s")
start_logging("WARNING")
logging.getLogger("relaax.x").info("too detailed")
logging.getLogger("relaax.x").warning("look at this")
print(os.getpid())
"""


def test_a_line_has_time_process_and_level_and_lower_levels_are_left_out():
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    pid = completed.stdout.strip()
    time_of_day = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(f"{time_of_day}:{pid}:WARNING:look at this\n", completed.stderr)


def run(program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip


FAILS = """
import logging, sys
from pathlib import Path
from relaax.telemetry.logs import start_logging, name_process
start_logging("INFO", *map(Path, sys.argv[1:]), program="relaax-learner")
try:
    raise OSError("no disk")
except OSError:
    logging.exception("saving failed")
name_process("worker 1")
logging.warning("y" * 10_000)
raise RuntimeError("the end")
"""


def test_with_a_log_file_all_is_there_and_on_standard_error(tmp_path):
    path = tmp_path / "log"
    completed = run(FAILS, path)
    for text in (completed.stderr, path.read_text()):
        for said in ("saving failed", "OSError: no disk", "y" * 1000, "RuntimeError: the end"):
            assert said in text
    lines = path.read_text().splitlines()
    assert all(re.match(r"[\d-]+ [\d:,]+ relaax-learner", line) for line in lines)
    assert " relaax-learner: worker 1 [" in lines[-1]
    assert lines[-1].endswith("ERROR: RuntimeError: the end")


def test_by_hand_a_traceback_is_as_python_prints_it():
    stderr = run(FAILS).stderr
    assert ":ERROR:saving failed\nTraceback (most recent call last):\n" in stderr


def test_under_relaax_train_every_line_says_whose_it_is():
    stderr = run(FAILS, **{ASKED_BY: "2"}).stderr
    assert re.search(r":ERROR:saving failed\n[\d-]+ [\d:,]+:\d+:ERROR:Traceback", stderr)


def test_no_line_is_longer_than_a_pipe_takes_as_a_whole():
    """So that a worker that is killed leaves no half line in the pipe that it shares."""
    lines = run(FAILS, **{ASKED_BY: "2"}).stderr.splitlines()
    assert max(map(len, lines)) < 4096
    assert sum(line.count("y" * 100) for line in lines) >= 90


def test_a_log_file_that_cannot_be_written_is_a_configuration_error(tmp_path):
    (tmp_path / "file").touch()
    completed = run(FAILS, tmp_path / "file" / "log")
    assert "ConfigurationError: --log-file: cannot write" in completed.stderr
