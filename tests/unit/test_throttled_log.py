"""A flood of lines becomes a few, and none of those left out is forgotten."""

import logging
import threading

import forking_programs
import pytest
from clock import Clock

from relaax import throttled_log
from relaax.throttled_log import EVERY_S, ForkedThrottledLog, ThrottledLog


@pytest.fixture(name="clock")
def _clock():
    return Clock(0.0)


@pytest.fixture(name="make")
def _make(clock, caplog):
    caplog.set_level(logging.INFO)
    return lambda at_once=1: ThrottledLog(logging.getLogger("a test"), at_once, clock)


@pytest.fixture(name="said")
def _said(caplog):
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_few_lines_come_at_once_and_then_one_now_and_then(make, clock, said):
    log = make(at_once=3)
    for number in range(5):
        log.warning("closed %s", number, kind="a")
    assert said() == ["closed 0", "closed 1", "closed 2"]
    clock.now += EVERY_S
    log.warning("closed %s", 5, kind="a")
    log.warning("closed %s", 6, kind="a")
    assert said()[3:] == ["closed 5 (3 times since the last such message)"]


def test_what_was_left_out_last_is_said_when_a_line_is_due(make, clock, said):
    log = make()
    for number in range(4):
        log.warning("closed %s", number, kind="a")
    log.say_left_out()
    assert said() == ["closed 0"]
    clock.now += EVERY_S
    log.say_left_out()
    clock.now += EVERY_S
    log.say_left_out()
    assert said()[1:] == ["closed 3 (3 times since the last such message)"]


def test_kinds_do_not_keep_one_another_silent(make, said, caplog):
    log = make()
    log.info("lost", kind="a")
    log.warning("closed", kind="b")
    log.error("refused", kind="c")
    assert said() == ["lost", "closed", "refused"]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING", "ERROR"]


def test_a_long_flood_is_as_many_lines_as_there_are_intervals(make, clock, said):
    log = make(at_once=20)
    seconds = 3600
    for _ in range(seconds):
        clock.now += 1.0
        for _ in range(20):
            log.warning("closed", kind="a")
        log.say_left_out()
    assert len(said()) <= seconds / EVERY_S + 20


def test_only_so_many_kinds_are_remembered(make, monkeypatch):
    monkeypatch.setattr(throttled_log, "MOST_KINDS", 10)
    log = make()
    for number in range(1000):
        log.warning("closed", kind=str(number))
        assert len(log._kinds) <= 10


def test_a_thread_that_writes_keeps_no_other_waiting(make, caplog, monkeypatch):
    is_written_to, may_go_on = threading.Event(), threading.Event()

    def slow(*_, **__):
        is_written_to.set()
        may_go_on.wait(20)

    log = make()
    monkeypatch.setattr(logging.getLogger("a test"), "_log", slow)
    writing, other = (
        threading.Thread(target=log.info, args=("lost",), kwargs={"kind": "a"}) for _ in "12"
    )
    writing.start()
    assert is_written_to.wait(20)
    other.start()
    other.join(5)
    waits = other.is_alive()
    may_go_on.set()
    for thread in (writing, other):
        thread.join(20)
    assert not waits


def test_threads_that_write_at_once_forget_none(make, clock, said):
    log = make()

    def flood():
        for _ in range(200):
            log.info("lost", kind="a")

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    clock.now += EVERY_S
    log.say_left_out()
    assert said() == ["lost", "lost (799 times since the last such message)"]


FORKED = """
import logging, os
from relaax.throttled_log import ForkedThrottledLog

logging.basicConfig(format="%(message)s", level=logging.INFO)
now = 100.0
log = ForkedThrottledLog(logging.getLogger("test"), ["a", "b"], at_once=5, clock=lambda: now)

def in_child(write):
    child = os.fork()
    if child == 0:
        write()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

FLOOD = """
for number in range(40):
    in_child(lambda: log.warning("closed %d", number, kind="a"))
in_child(lambda: log.info("of another kind", kind="b"))
now += 100.0
log.say_left_out()  # here, where nothing was left out
in_child(lambda: log.warning("closed at last", kind="a"))
"""

AT_ONCE = """
children = []
for number in range(8):
    children.append(os.fork())
    if children[-1] == 0:
        for _ in range(50):
            log.warning("closed by %d", number, kind="a")
        os._exit(0)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
now += 100.0
log.warning("closed at last", kind="a")
"""


def test_processes_that_are_forked_write_a_few_lines_together():
    lines = forking_programs.run(FORKED, FLOOD).stderr.splitlines()
    assert lines == [
        *(f"closed {number}" for number in range(5)),
        "of another kind",
        "closed at last (36 times since the last such message)",
    ]


def test_of_processes_that_write_at_once_none_is_forgotten():
    lines = forking_programs.run(FORKED, AT_ONCE).stderr.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "closed at last (396 times since the last such message)"


def test_what_a_process_has_left_out_it_says_itself(clock, caplog, said):
    caplog.set_level(logging.INFO)
    log = ForkedThrottledLog(logging.getLogger("a test"), ["a"], 1, clock)
    for number in range(3):
        log.info("lost %d", number, kind="a")
    assert said() == ["lost 0"]
    clock.now += EVERY_S
    log.say_left_out()
    assert said()[1:] == ["lost 2 (2 times since the last such message)"]
    log.say_left_out()
    assert len(said()) == 2
