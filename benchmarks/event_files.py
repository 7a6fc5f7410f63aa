"""What TensorBoard's event files hold, while they are written or after that."""

import struct
from collections.abc import Iterator
from pathlib import Path

from relaax.telemetry.training.event_file import without_torch

with without_torch():
    from tensorboardX.proto.event_pb2 import Event

#: Length (8 bytes) and its checksum (4) before an event, the event's checksum (4) after it.
_HEAD, _TAIL = 12, 4


class EventFiles:
    """Reads the events in the files below a directory, each of them once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._offsets: dict[Path, int] = {}

    def new(self) -> Iterator[Event]:
        """Yield the events that were written since the call before, file by file."""
        for path in sorted(self._directory.rglob("events.out.tfevents.*")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                data = file.read()
            consumed = 0
            for event, end in _whole_records(data):
                consumed = end
                yield event
            self._offsets[path] = self._offsets.get(path, 0) + consumed


def _whole_records(data: bytes) -> Iterator[tuple[Event, int]]:
    """Yield events and where their records end; the last may not have been written as a whole."""
    offset = 0
    while offset + _HEAD <= len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        begin, offset = offset + _HEAD, offset + _HEAD + length + _TAIL
        if offset > len(data):
            return
        yield Event.FromString(data[begin : begin + length]), offset
