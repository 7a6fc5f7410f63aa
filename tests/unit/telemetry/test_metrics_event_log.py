"""An event log goes on with a new file when the disk has failed."""

import logging
from pathlib import Path

import pytest

from relaax.telemetry.training import EventWriter, describe_run, event_file
from relaax.telemetry.training.event_file import Scalar
from relaax.telemetry.training.event_writer import EventLog

VALUE = Scalar("loss", 0.5, 1, 0.0)


class Disk:
    """In place of tensorboardX's writer: while ``is_full``, no file can be opened or flushed."""

    def __init__(self):
        self.is_full = False
        self.records = []

    def open(self, path):
        self.flush()
        Path(path).touch(exist_ok=False)
        return self

    def write(self, record):
        self.records.append(record)

    def flush(self):
        if self.is_full:
            raise OSError(28, "No space left on device")

    def close(self):
        pass


@pytest.fixture
def disk(monkeypatch):
    made = Disk()
    monkeypatch.setattr(event_file, "RecordWriter", made.open)
    return made


def test_lost_values_are_counted_and_reported_when_writing_succeeds_again(tmp_path, disk, caplog):
    log = EventLog(tmp_path, retry_s=0)
    disk.is_full = True
    log.flush()
    for _ in range(3):
        log.write(VALUE)
    disk.is_full = False
    log.write(VALUE)
    log.flush()
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
    assert caplog.messages[1] == f"metrics are written to {tmp_path} again; at least 3 were lost"


def test_a_file_that_stayed_empty_is_removed(tmp_path, disk):
    log = EventLog(tmp_path, retry_s=0)
    assert len(list(tmp_path.iterdir())) == 1
    disk.is_full = True
    log.flush()
    assert list(tmp_path.iterdir()) == []


def test_no_new_file_is_tried_before_its_time(tmp_path, disk):
    log = EventLog(tmp_path, retry_s=3600)
    disk.is_full = True
    log.flush()
    disk.is_full = False
    before = len(disk.records)
    log.write(VALUE)
    log.close()
    assert len(disk.records) == before


def test_a_directory_without_room_for_the_first_file_is_an_error_at_once(tmp_path, disk):
    disk.is_full = True
    with pytest.raises(OSError, match="No space left"):
        EventLog(tmp_path, retry_s=0)


def test_after_a_restart_the_curve_has_no_overlap(tmp_path):
    """What was reached after the checkpoint that the run goes on from is given up."""
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    for begins, steps in ((0, range(0, 701, 100)), (500, range(550, 801, 50))):
        log = EventLog(tmp_path, retry_s=0, description=describe_run({}, None, "da3c", {}))
        log.begin(begins)
        for step in steps:
            for tag in ("episode/reward", "server/steps per second"):
                log.write(Scalar(tag, float(begins), step, 0.0))
        log.close()
        (file,) = tmp_path.glob("events.*")  # made within one second, they have no order
        file.rename(tmp_path / f"{begins:03d}.tfevents")
    read = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    kept = [0, 100, 200, 300, 400, 550, 600, 650, 700, 750, 800]
    for tag in ("episode/reward", "server/steps per second"):
        assert [event.step for event in read.Scalars(tag)] == kept
    assert len(read.Tensors("configuration/text_summary")) == 2


def test_a_training_that_goes_back_while_it_runs_begins_there_again(tmp_path):
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    writer = EventWriter(tmp_path, lambda: 0)
    writer.begin(0)
    for step in (1, 2, 3):
        writer.scalar("a", step, step)
    writer.begin(2)
    writer.scalar("a", -2, 2)
    writer.close()
    read = event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in read.Scalars("a")] == [(1, 1), (2, -2)]
