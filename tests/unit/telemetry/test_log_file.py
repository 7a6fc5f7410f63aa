"""One log file for several processes: whole lines, each with its process, and a limited size."""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from relaax.telemetry import logs
from relaax.telemetry.logs import SharedLogFile

LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
    r"(?P<process>\S.*) \[(?P<pid>\d+)\] (?P<level>[A-Z]+): (?P<message>.*)"
)


def record(message, process="learner", level=logging.WARNING, **fields):
    return logging.makeLogRecord(
        {
            "msg": message,
            "processName": process,
            "process": 7,
            "levelno": level,
            "levelname": logging.getLevelName(level),
            **fields,
        }
    )


@pytest.fixture(name="opened")
def _opened(tmp_path):
    """Opens the log of the test, as another process would, too."""
    files = []

    def opened(**limits):
        files.append(SharedLogFile(tmp_path / "training" / "log", **limits))
        return files[-1]

    yield opened
    for file in files:
        file.close()


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "training" / "log"


def lines_of(path):
    return [LINE.fullmatch(line) for line in path.read_text().splitlines()]


def test_a_line_has_time_process_and_level(opened, path):
    opened().handle(record("look at this"))
    (line,) = lines_of(path)
    found = (line["process"], line["pid"], line["level"], line["message"])
    assert found == ("learner", "7", "WARNING", "look at this")


def test_every_line_of_a_traceback_has_them_too(opened, path):
    try:
        raise ValueError("not\nso")
    except ValueError:
        opened().handle(record("it failed", exc_info=sys.exc_info()))
    lines = lines_of(path)
    assert all(line["level"] == "WARNING" for line in lines)
    assert [line["message"] for line in lines][:2] == [
        "it failed",
        "Traceback (most recent call last):",
    ]
    assert [line["message"] for line in lines][-2:] == ["ValueError: not", "so"]


def test_a_message_without_text_is_a_line(opened, path):
    opened().handle(record(""))
    assert [line["message"] for line in lines_of(path)] == [""]


def test_a_killed_processs_unfinished_line_is_ended(opened, path):
    first, second = opened(), opened()
    first.handle(record("whole"))
    with path.open("a") as file:
        file.write("2026-11-22 17:00:00,000 worker 1 [9] ERR")
    second.handle(record("the next"))
    first.handle(record("and one more"))
    whole, half, *after = path.read_text().splitlines()
    assert whole.endswith("whole")
    assert half == "2026-11-22 17:00:00,000 worker 1 [9] ERR"
    assert [LINE.fullmatch(line)["message"] for line in after] == ["the next", "and one more"]


def test_at_its_size_the_file_is_renamed_and_every_process_goes_on_in_the_new_one(opened, path):
    files = [opened(max_bytes=1000, older=50) for _ in range(3)]
    for number in range(90):
        files[number % 3].handle(record(f"message {number}"))
    older = sorted(path.parent.glob("log.*"), key=lambda file: -int(file.suffix[1:]))
    messages = [line["message"] for file in (*older, path) for line in lines_of(file)]
    assert messages == [f"message {number}" for number in range(90)]
    assert all(file.stat().st_size <= 1000 for file in (*older, path))


def test_no_more_older_files_are_kept_than_allowed(opened, path):
    file = opened(max_bytes=200, older=2)
    for number in range(50):
        file.handle(record(f"message {number}"))
    assert {found.name for found in path.parent.iterdir()} == {"log", "log.1", "log.2"}


#: Writes long records until it is killed.
WRITER = """
import logging, sys
from pathlib import Path
from relaax.telemetry.logs import start_logging
name = sys.argv[2]
start_logging("INFO", Path(sys.argv[1]), name)
logging.getLogger().handlers = logging.getLogger().handlers[1:]
for number in range(int(sys.argv[3])):
    logging.info("%s %d %s", name, number, "x" * 5000)
    if number == 3:
        print("ready", flush=True)
"""


def writers(path, count, records):
    return [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, f"w{number}", str(records)], stdout=subprocess.PIPE
        )
        for number in range(count)
    ]


def test_lines_of_processes_that_write_at_once_and_are_killed_stay_whole(path):
    *others, killed = processes = writers(path, 3, 300)
    assert killed.stdout.readline() == b"ready\n"
    killed.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait(60)
        process.stdout.close()
    (behind,) = writers(path, 1, 1)  # the killed one may have been the last to write
    behind.wait(60)
    behind.stdout.close()
    *texts, last = path.read_text().splitlines()
    broken = [text for text in texts if not text.endswith("x" * 5000)]
    assert len(broken) <= 1  # what the killed one had begun; nothing is behind it
    assert last.endswith("x" * 5000)
    for number, _ in enumerate(others):
        found = [
            text.split(f"w{number} ")[2].split()[0] for text in texts if f": w{number} " in text
        ]
        assert found == [str(n) for n in range(300)]


def test_a_process_that_holds_the_lock_for_ever_does_not_stop_the_others(opened, path, monkeypatch):
    monkeypatch.setattr(logs, "LOCK_TIMEOUT_S", 0.01)
    first, second = opened(), opened()
    with first.turn():
        second.handle(record("all the same"))
    assert [line["message"] for line in lines_of(path)] == ["all the same"]


def test_a_full_disk_is_reported_once(capsys):
    file = SharedLogFile(Path("/dev/full"))
    for _ in range(3):
        file.handle(record("lost"))
    file.close()
    assert capsys.readouterr().err.count("cannot write the log /dev/full") == 1


def test_a_child_of_a_fork_writes_beside_its_parent(opened, path):
    file = opened()
    child = os.fork()
    if child == 0:
        try:
            for number in range(100):
                file.handle(record(f"c{number}", "child"))
        finally:
            os._exit(0)
    for number in range(100):
        file.handle(record(f"p{number}", "parent"))
    assert os.waitpid(child, 0)[1] == 0
    lines = lines_of(path)
    for process in ("child", "parent"):
        messages = [line["message"] for line in lines if line["process"] == process]
        assert messages == [f"{process[0]}{number}" for number in range(100)]
