"""Metrics become event files that TensorBoard reads, and their callers never wait."""

import logging
import math
import struct
import threading
import time

import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import RecordWriter, masked_crc32c

import relaax.telemetry.training as package
from relaax.errors import ConfigurationError
from relaax.telemetry.training import EventWriter, event_file
from relaax.telemetry.training.event_writer import EventLog

DEADLINE_S = 30


def read_events(path):
    """Read TFRecord frames: length, its checksum, bytes, their checksum. A cut tail is left out."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            return
        header, record = data[at : at + 8], data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 8) == (masked_crc32c(header),)
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked_crc32c(record),)
        yield Event.FromString(record)
        at += 16 + length


def scalars(directory):
    """Return (tag, value, step) of everything in a directory, in TensorBoard's order."""
    return [
        (value.tag, value.simple_value, event.step)
        for path in sorted(directory.glob("*tfevents*"))
        for event in read_events(path)
        for value in event.summary.value
    ]


def wait_for(condition):
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"not within {DEADLINE_S} s"
        time.sleep(0.005)


@pytest.fixture
def writer(tmp_path):
    one = EventWriter(tmp_path, lambda: 42)
    yield one
    one.close()


@pytest.fixture
def blocked(monkeypatch):
    """A disk that takes no value before the event is set; ``waits`` says that it is asked to."""
    release = threading.Event()
    release.waits = threading.Event()
    write = EventLog.write

    def wait_and_write(log, scalar):
        release.waits.set()
        release.wait(DEADLINE_S)
        write(log, scalar)

    monkeypatch.setattr(EventLog, "write", wait_and_write)
    yield release
    release.set()


def test_the_package_exports_these_names():
    assert package.__all__ == [
        "ClientMetricLimits", "EventWriter", "RunRecord", "S3Mirror", "SeveralMetrics",
        "WandbWriter", "WorkerRuns", "describe_run", "worker_runs",
    ]  # fmt: skip


def test_a_value_is_written_at_its_x(tmp_path, writer):
    writer.scalar("entropy", 0.5, 7)
    writer.scalar("entropy", 0.25, x=8.9)
    writer.close()
    assert scalars(tmp_path) == [("entropy", 0.5, 7), ("entropy", 0.25, 8)]


def test_x_defaults_to_the_global_step_of_the_moment_it_arrives(tmp_path, blocked):
    steps = iter([10, 20])
    writer = EventWriter(tmp_path, lambda: next(steps))
    writer.scalar("loss", 1)
    writer.scalar("loss", 2)
    assert list(steps) == []  # called at once, although the disk takes no value yet
    blocked.set()
    writer.close()
    assert scalars(tmp_path) == [("loss", 1, 10), ("loss", 2, 20)]


def test_a_value_carries_the_time_of_its_arrival(tmp_path, writer):
    before = time.time()
    writer.scalar("loss", 1)
    after = time.time()
    writer.close()
    (path,) = tmp_path.iterdir()
    (version, event) = read_events(path)
    assert version.file_version == "brain.Event:2"
    assert before <= event.wall_time <= after


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("learner/policy loss", "learner/policy_loss"),
        ("server/cpu-0.load", "server/cpu-0.load"),
        ("latency (network), ms", "latency__network___ms"),
        ("/absolute", "absolute"),
        ("длина", "длина"),
        ("half a pair \ud800", "half_a_pair__"),
    ],
)
def test_a_name_becomes_a_tag(tmp_path, writer, name, tag):
    writer.scalar(name, 1)
    writer.close()
    assert scalars(tmp_path) == [(tag, 1, 42)]


def test_names_become_the_tags_that_tensorboardx_makes_of_them():
    from tensorboardX.summary import _clean_tag

    names = ["learner/policy loss", "a/b-c.d", "latency (network), ms", "/x", "длина"]
    assert [event_file.tag(name) for name in names] == [_clean_tag(name) for name in names]


def test_nan_and_infinities_are_written_as_they_are(tmp_path, writer, caplog):
    for y in (math.nan, math.inf, -math.inf, 1e300):
        writer.scalar("loss", y)
    writer.close()
    values = [value for _, value, _ in scalars(tmp_path)]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, math.inf]
    assert caplog.records == []


@pytest.mark.parametrize("x", [math.nan, math.inf, 2.0**63, -(2**80)])
def test_a_value_whose_x_is_no_step_is_dropped_with_a_warning(tmp_path, writer, caplog, x):
    writer.scalar("loss", 1, x)
    writer.scalar("loss", 2, 2)
    writer.close()
    assert scalars(tmp_path) == [("loss", 2, 2)]
    assert "1 metrics were dropped: x is not a step" in caplog.text


def test_values_are_on_disk_before_close(tmp_path):
    writer = EventWriter(tmp_path, lambda: 1, flush_interval_s=0.01)
    writer.scalar("loss", 1)
    wait_for(lambda: scalars(tmp_path) == [("loss", 1, 1)])
    writer.close()


def test_values_of_many_threads_are_all_written(tmp_path, writer):
    def produce(name):
        for y in range(200):
            writer.scalar(name, y)

    threads = [threading.Thread(target=produce, args=(f"m{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    for i in range(8):
        assert [y for tag, y, _ in scalars(tmp_path) if tag == f"m{i}"] == list(range(200))


def test_a_full_queue_drops_values_and_says_how_many(tmp_path, blocked, caplog):
    writer = EventWriter(tmp_path, lambda: 1, capacity=3, report_interval_s=0.01)
    writer.scalar("loss", 0)
    assert blocked.waits.wait(DEADLINE_S)
    for y in range(1, 11):
        writer.scalar("loss", y)
    blocked.set()
    wait_for(lambda: "dropped" in caplog.text)
    writer.close()
    assert [y for _, y, _ in scalars(tmp_path)] == [0, 1, 2, 3]
    assert "7 metrics were dropped" in caplog.text
    assert caplog.text.count("dropped") == 1


def test_close_gives_up_on_a_disk_that_hangs(tmp_path, blocked, caplog):
    writer = EventWriter(tmp_path, lambda: 1, capacity=1)
    writer.scalar("loss", 0)
    assert blocked.waits.wait(DEADLINE_S)
    writer.scalar("loss", 1)
    writer.close(deadline_s=0.05)
    assert "not written within 0.05 s" in caplog.text


def test_closing_twice_and_metrics_after_close_do_no_harm(tmp_path, writer):
    writer.scalar("loss", 1)
    writer.close()
    writer.scalar("loss", 2)
    writer.close()
    assert [y for _, y, _ in scalars(tmp_path)] == [1]


def test_close_ends_the_thread(tmp_path):
    before = threading.active_count()
    writer = EventWriter(tmp_path, lambda: 1)
    writer.close()
    assert threading.active_count() == before


def test_restarts_within_a_second_do_not_write_the_same_file(tmp_path):
    for y in range(3):
        writer = EventWriter(tmp_path, lambda: 1)
        writer.scalar("loss", y)
        writer.close()
    assert len(list(tmp_path.iterdir())) == 3
    assert sorted(y for _, y, _ in scalars(tmp_path)) == [0, 1, 2]


def test_a_full_disk_is_logged_once_and_left_when_there_is_room(tmp_path, monkeypatch, caplog):
    files = []

    def on_a_full_disk(path):
        files.append(path)
        return RecordWriter("/dev/full")

    def written(y):
        writer.scalar("loss", y)
        return any(found == y for _, found, _ in scalars(tmp_path))

    with monkeypatch.context() as full_disk:
        full_disk.setattr(event_file, "RecordWriter", on_a_full_disk)
        writer = EventWriter(tmp_path, lambda: 1, flush_interval_s=0.001, retry_s=0.001)
        wait_for(lambda: written(1) or len(files) >= 4)  # the first and three more tried
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "No space left on device" in record.exc_text
    assert str(tmp_path) in record.getMessage()

    wait_for(lambda: written(2))
    writer.close()
    assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING"]
    assert "again" in caplog.records[1].getMessage()


def test_a_directory_that_cannot_be_made_is_a_configuration_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="file"):
        EventWriter(tmp_path / "file", lambda: 1)


def test_tensorboard_reads_the_files(tmp_path, writer):
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New

    writer.scalar("loss", 0.5, 3)
    writer.close()
    (path,) = tmp_path.iterdir()
    reader = PyRecordReader_New(str(path))
    reader.GetNext()
    reader.GetNext()
    event = Event.FromString(reader.record())
    assert (event.step, event.summary.value[0].simple_value) == (3, 0.5)
