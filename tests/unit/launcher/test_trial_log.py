"""The lines of a trial's log, as ``relaax-experiment logs`` prints them."""

import threading
from contextlib import closing
from datetime import datetime

import pytest

from relaax.launcher.process_log import ProcessLog
from relaax.launcher.trial_log import TrialLog


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "log"


@pytest.fixture(name="writer")
def _writer(path):
    with closing(ProcessLog(path)) as log:
        yield lambda name, *lines: [log.write(name, datetime.now(), line) for line in lines]


def messages(lines):
    return [line.rpartition(": ")[2] for line in lines]


def last(path, count, worker=None):
    with closing(TrialLog(path, worker)) as log:
        return messages(log.last(count))


def test_the_last_lines_are_those_of_a_process_where_it_is_named(path, writer):
    writer("ps", "one")
    writer("trainer", "two", "three")
    writer("ps", "four")
    assert last(path, 2) == ["three", "four"]
    assert last(path, None, "ps") == ["one", "four"]
    assert last(path, None, "p") == []


def test_lines_of_a_file_that_was_renamed_count(path, writer):
    writer("ps", "one")
    path.rename(f"{path}.1")
    writer("ps", "two")
    assert last(path, None) == last(path, 3) == ["one", "two"]


def test_older_files_are_read_only_as_far_as_their_lines_are_asked_for(path, writer):
    path.with_name("log.2").mkdir()  # which cannot be read
    writer("ps", "one", "two")
    path.rename(f"{path}.1")
    writer("ps", "three")
    assert last(path, 2) == ["two", "three"]
    with pytest.raises(IsADirectoryError):
        last(path, 4)


def test_further_lines_follow_also_in_a_new_file_until_the_end(path, writer):
    writer("ps", "one")
    log, found, is_over = TrialLog(path), [], threading.Event()
    log.last(None)
    thread = threading.Thread(target=lambda: found.extend(log.follow(lambda: not is_over.is_set())))
    thread.start()
    writer("ps", "two")
    path.rename(f"{path}.1")
    writer("ps", "three")
    is_over.set()
    thread.join(10)
    assert messages(found) == ["two", "three"]
    log.close()


def test_a_line_is_shown_when_it_is_whole(path):
    path.write_text("2026-11-28 21:00:00,000 ps [1] INFO: whole\n2026-11-28 21")
    log = TrialLog(path)
    assert messages(log.last(None)) == ["whole"]
    with path.open("a") as file:
        file.write(":00:00,000 ps [1] INFO: later\n")
    assert messages(log.follow(lambda: False)) == ["later"]
    log.close()
