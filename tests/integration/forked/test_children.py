"""Forked processes and their owner."""

import forking_programs
import pytest

pytestmark = pytest.mark.integration

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
    return forking_programs.run(PREAMBLE, program)


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


def test_a_child_does_not_hold_what_its_parent_owns():
    """The pipe ends when the parent closes it, although a child of it runs on."""
    program = """
        class Pipe:
            def __init__(self):
                self.reader, self.writer = os.pipe()
            def close(self):
                os.close(self.writer)
        first, second = Pipe(), Pipe()
        children.parents_own(first, second)
        children.no_longer_open(second)
        children.fork("sleeper", lambda: time.sleep(60) or 0)
        first.close()
        signal.alarm(20)
        assert os.read(first.reader, 1) == b""
        second.close()
        os.set_blocking(second.reader, False)
        try:
            os.read(second.reader, 1)
            sys.exit("the child has closed what is not the parent's any more")
        except BlockingIOError:
            children.stop()
    """
    run(program)


def test_some_children_can_be_ended_while_others_run():
    program = """
        first, second = (children.fork(name, lambda: time.sleep(60) or 0) for name in "ab")
        children.end([first])
        assert children.pids == [second]
        children.end([first])
        children.send_signal([first, second], signal.SIGKILL)
        assert wait_for_end(children).exit_code == -signal.SIGKILL
    """
    run(program)


def test_a_signal_that_comes_at_once_finds_the_childs_own_handlers():
    """The parent's handler for it would run in the child otherwise."""
    program = """
        signal.signal(signal.SIGTERM, lambda number, frame: os.write(2, b"the parent's"))
        for _ in range(20):
            pid = children.fork("sleeper", lambda: time.sleep(60) or 0)
            os.kill(pid, signal.SIGTERM)
            assert wait_for_end(children).exit_code == 0
    """
    assert "the parent's" not in run(program).stderr


def test_ctrl_c_is_left_to_the_parent():
    program = """
        reader, writer = os.pipe()
        def work():
            os.kill(os.getpid(), signal.SIGINT)
            return 5
        children.fork("worker", work)
        assert wait_for_end(children).exit_code == 5
    """
    run(program)
