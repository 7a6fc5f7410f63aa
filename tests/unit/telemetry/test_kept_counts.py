"""What a process has counted is read by another one, also after it was killed."""

import os
import subprocess
import sys

import pytest
from processes import wait_for

from relaax.telemetry.kept_counts import KeptCounts

PROGRAM = """
from relaax.telemetry.kept_counts import KeptCounts
counts = KeptCounts(["sent", "lost"], rows=2)
counts.row(0).add("sent", 3)
counts.row(1).add("sent", 4)
print("counted", flush=True)
input()
counts.row(1).add("lost", 1)
print("counted", flush=True)
input()
"""


@pytest.fixture(name="process")
def _process():
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_rows_are_added_up_by_name():
    counts = KeptCounts(["sent", "lost"], rows=3)
    counts.row(0).add("sent", 2)
    counts.row(2).add("sent", 5)
    assert counts.totals() == {"sent": 7, "lost": 0}
    assert counts.row(2)["sent"] == 5


def test_a_reader_sees_the_counts_also_after_the_process_was_killed(process):
    counts = KeptCounts.of_process(process.pid)
    assert counts.names == ["sent", "lost"]
    assert counts.totals() == {"sent": 7, "lost": 0}
    print(file=process.stdin, flush=True)
    process.stdout.readline()
    process.kill()
    process.wait()
    assert counts.totals() == {"sent": 7, "lost": 1}
    assert KeptCounts.of_process(process.pid) is None


def test_a_forked_process_counts_in_the_same_memory():
    counts = KeptCounts(["sent"])
    row = counts.row()
    pid = os.fork()
    if pid == 0:
        row.add("sent", 1)
        os._exit(0)
    wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "the end of the fork", 10)
    assert row["sent"] == 1


def test_a_process_without_counts_is_recognised():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert KeptCounts.of_process(process.pid) is None
        process.kill()
