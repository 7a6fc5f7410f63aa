"""Reads TensorBoard event files."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tensorboardX.proto import event_pb2


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag."""
    found = defaultdict(list)
    for event in _events(directory):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found[value.tag].append((event.step, value.simple_value))
    return found


def beginnings(directory: Path) -> list[int]:
    """The steps from which the run goes on, as its files say, the smallest first."""
    return sorted(
        event.step
        for event in _events(directory)
        if event.session_log.status == event_pb2.SessionLog.START
    )


def _events(directory: Path) -> Iterator[event_pb2.Event]:
    """A record: length, its checksum, an Event, and its checksum. A kill may leave half of one."""
    for path in directory.rglob("events.out.tfevents.*"):
        data, offset = path.read_bytes(), 0
        while offset < len(data):
            (length,) = struct.unpack("<Q", data[offset : offset + 8].ljust(8, b"\xff"))
            if offset + 16 + length > len(data):
                break
            yield event_pb2.Event.FromString(data[offset + 12 : offset + 12 + length])
            offset += 16 + length
