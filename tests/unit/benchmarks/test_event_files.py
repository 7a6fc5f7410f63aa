"""TensorBoard's event files, read while they are written."""

import pytest
from event_files import EventFiles

from relaax.telemetry.training.event_file import EventFile, Scalar


@pytest.fixture
def writer(tmp_path):
    writer = EventFile(tmp_path)
    yield writer
    writer.close()


def write(writer, *steps):
    for step in steps:
        writer.write(Scalar("episode/reward", 1.0, step, wall_time=0.0))
    writer.flush()


def steps_in(events):
    return [event.step for event in events if not event.file_version]


def test_each_event_is_read_once(writer, tmp_path):
    files = EventFiles(tmp_path)
    write(writer, 1, 2)
    assert steps_in(files.new()) == [1, 2]
    write(writer, 3)
    assert steps_in(files.new()) == [3]
    assert steps_in(files.new()) == []


def test_an_event_that_is_half_written_is_read_when_it_is_whole(writer, tmp_path):
    write(writer, 1, 2)
    whole = writer.path.read_bytes()
    for length in range(len(whole) - 1, len(whole) - 8, -1):
        writer.path.write_bytes(whole[:length])
        files = EventFiles(tmp_path)
        assert steps_in(files.new()) == [1]
        writer.path.write_bytes(whole)
        assert steps_in(files.new()) == [2]


def test_a_directory_without_files_has_no_events(tmp_path):
    assert list(EventFiles(tmp_path / "absent").new()) == []
