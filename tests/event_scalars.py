"""Reads the scalars of TensorBoard event files."""

import struct
from collections import defaultdict
from pathlib import Path

from tensorboardX.proto import event_pb2


def scalars(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag. A record: length, its checksum, an Event, and its checksum."""
    found = defaultdict(list)
    for path in directory.rglob("events.out.tfevents.*"):
        data, offset = path.read_bytes(), 0
        while offset < len(data):
            (length,) = struct.unpack_from("<Q", data, offset)
            event = event_pb2.Event.FromString(data[offset + 12 : offset + 12 + length])
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found[value.tag].append((event.step, value.simple_value))
            offset += 16 + length
    return found
