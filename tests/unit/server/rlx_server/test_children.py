"""Forked processes and their owner. Each case runs in a process of its own: forking a test
runner, with its threads, would test something else."""

import subprocess
import sys
import textwrap

PREAMBLE = """
import os, signal, sys, time
from relaax.server.rlx_server import children as module
from relaax.server.rlx_server.children import Children

def wait_for_end(children):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for ended in children.reap():
            return ended
        time.sleep(0.01)

children = Children()
"""


def run(program):
    completed = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    return completed


def test_the_exit_status_of_a_function_is_reported():
    program = """
        pid = children.fork("seven", lambda: 7)
        ended = wait_for_end(children)
        assert (ended.pid, ended.name, ended.exit_code) == (pid, "seven", 7), ended
        assert children.pids == []
    """
    run(program)


def test_an_exception_in_a_child_is_logged_with_its_traceback_and_ends_that_child_alone():
    program = """
        def fail():
            raise KeyError("lost")
        children.fork("loser", fail)
        assert wait_for_end(children).exit_code == 1
    """
    stderr = run(program).stderr
    assert "loser failed" in stderr
    assert "KeyError: 'lost'" in stderr


def test_a_signal_that_killed_a_child_is_reported():
    program = """
        pid = children.fork("sleeper", lambda: time.sleep(60) or 0)
        os.kill(pid, signal.SIGKILL)
        assert wait_for_end(children).exit_code == -signal.SIGKILL
    """
    run(program)


def test_stop_ends_children_and_waits_for_them():
    program = """
        pids = [children.fork("sleeper", lambda: time.sleep(60) or 0) for _ in range(3)]
        children.stop()
        for pid in pids:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                continue
            sys.exit("a child is still there")
    """
    run(program)


def test_a_child_that_does_not_stop_is_killed():
    program = """
        module.STOP_DEADLINE_S = 0.5
        def stubborn():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(ready, b".")
            time.sleep(60)
            return 0
        reader, ready = os.pipe()
        children.fork("stubborn", stubborn)
        os.read(reader, 1)
        children.stop()
        assert children.pids == []
    """
    assert "stubborn" in run(program).stderr


def test_children_end_when_their_parent_is_killed():
    """The grandchild holds the write end of a pipe; the pipe ends when it does."""
    program = """
        reader, writer = os.pipe()
        parent = os.fork()
        if parent == 0:
            family = Children()
            family.fork("orphan", lambda: os.write(writer, b"!") and (time.sleep(60) or 0))
            time.sleep(60)
        os.close(writer)
        assert os.read(reader, 1) == b"!"
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        signal.alarm(20)
        assert os.read(reader, 1) == b""
    """
    run(program)
