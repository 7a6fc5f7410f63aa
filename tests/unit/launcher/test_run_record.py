"""The state of a run in a file, for other shells."""

import os
import shutil
import subprocess
import sys

import pytest
from clock import Clock

from relaax.errors import ConfigurationError
from relaax.launcher.run_record import Process, RunRecorder, read_record


@pytest.fixture(name="child")
def _child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child
        child.kill()


def test_the_record_says_which_processes_run_and_how_others_have_ended(tmp_path, child):
    path = tmp_path / "run.json"
    recorder = RunRecorder(path)
    recorder.note_start("trainer", child.pid)
    recorder.note_start("actors", child.pid)
    recorder.note_end("actors", -9)
    record = read_record(path)
    assert record.launcher.running().pid == os.getpid()
    assert record.state_of("trainer") == "runs"
    assert record.state_of("actors") == "ended by signal 9"


def test_a_process_that_was_killed_with_its_launcher_is_gone(tmp_path, child):
    RunRecorder(tmp_path / "run.json").note_start("trainer", child.pid)
    child.kill()
    child.wait()
    assert read_record(tmp_path / "run.json").state_of("trainer") == "is gone"


def test_a_process_of_another_machine_runs_as_long_as_its_launcher(tmp_path, child):
    """Its number is none of this machine's."""
    path = tmp_path / "run.json"
    recorder = RunRecorder(path)
    recorder.note_start("trainer", child.pid, "10.0.0.2")
    record = read_record(path)
    assert record.workers["trainer"].running() is None
    assert record.state_of("trainer") == "runs"
    ended = record.model_copy(update={"launcher": Process()})
    assert ended.state_of("trainer") == "is gone"
    recorder.note_end("trainer", 0)
    assert read_record(path).state_of("trainer") == "ended with status 0"


def test_another_process_with_the_number_of_an_earlier_one_is_not_taken_for_it(tmp_path, child):
    path = tmp_path / "run.json"
    RunRecorder(path).note_start("trainer", child.pid)
    worker = read_record(path).workers["trainer"]
    earlier = worker.model_copy(update={"created": worker.created - 60})
    assert worker.running() is not None
    assert earlier.running() is None


def test_progress_is_written_once_a_second_and_ends_at_once(tmp_path, child):
    clock, path = Clock(0.0), tmp_path / "run.json"
    recorder = RunRecorder(path, clock)
    recorder.note_start("trainer", child.pid)
    recorder.note_progress("trainer", "step 1")
    assert read_record(path).workers["trainer"].progress == ""
    clock.now = 1.0
    recorder.note_progress("trainer", "step 2")
    assert read_record(path).workers["trainer"].progress == "step 2"
    recorder.note_status(0)
    assert read_record(path).launcher.status == 0


def test_the_process_whose_failure_has_ended_the_run_is_named_with_its_error(tmp_path, child):
    recorder = RunRecorder(tmp_path / "run.json")
    for name in ("ps", "evaluator", "actors", "trainer"):
        recorder.note_start(name, child.pid)
        recorder.note_line(name, f"the words of {name}")
    recorder.note_end("evaluator", 143)  # it was stopped, and the others ran on
    assert recorder.failure() is None
    recorder.note_end("actors", 1)
    recorder.note_decided_by("actors")
    recorder.note_end("trainer", -15)
    assert recorder.failure() == "actors ended with status 1: the words of actors"


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["relaax-actor: error: no such game", "bye"], "relaax-actor: error: no such game"),
        (["2026-11-28 21:00:00,000:7:ERROR:the plant is off", "bye"], "the plant is off"),
        (["2026-11-28 21:00:00,000:7:INFO:the plant is on"], "the plant is on"),
        (
            ["x: error: an earlier one", "Traceback (most recent call last):", "  File", "E: off"],
            "E: off",
        ),
    ],
)
def test_the_error_of_a_process_is_not_hidden_by_later_lines(tmp_path, child, lines, error):
    recorder = RunRecorder(tmp_path / "run.json")
    recorder.note_start("actors", child.pid)
    for line in lines:
        recorder.note_line("actors", line)
    recorder.note_end("actors", 1)
    assert read_record(tmp_path / "run.json").workers["actors"].said == error


def test_a_run_goes_on_where_its_record_cannot_be_written_any_more(tmp_path, child, caplog):
    folder = tmp_path / "trial"
    with pytest.raises(ConfigurationError, match="cannot write"):
        RunRecorder(folder / "run.json")
    folder.mkdir()
    recorder = RunRecorder(folder / "run.json")
    shutil.rmtree(folder)
    recorder.note_start("trainer", child.pid)
    recorder.note_end("trainer", 0)
    assert caplog.text.count("cannot write") == 1
    folder.mkdir()
    recorder.note_status(0)
    assert read_record(folder / "run.json").launcher.status == 0


def test_a_record_of_another_version_is_refused(tmp_path):
    (tmp_path / "run.json").write_text('{"host": 1}')
    with pytest.raises(ConfigurationError, match="another version"):
        read_record(tmp_path / "run.json")
