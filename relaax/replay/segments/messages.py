"""A sample whose arrays lie in a segment, as a message."""

from relaax.bridge.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.array_bytes import size_of
from relaax.replay.segments.room import NoRoom, Room
from relaax.replay.segments.segment import Bytes
from relaax.replay.table import Sample
from relaax.replay.wire import arrays_of, fields_of, forms_of, items_message, sample_with


def placed_message(sample: Sample, room: Room) -> WithPayload[replay_pb2.Items]:
    """Return a sample as a message that says where its arrays lie; with them if they do not fit."""
    fields = fields_of(sample)
    try:
        for array, contents in zip(fields.arrays, arrays_of(sample), strict=True):
            array.offset = room.offset_of(contents)
    except NoRoom:
        return items_message(sample)
    fields.in_segment = True
    return WithPayload(fields, None)


def sample_in(fields: replay_pb2.Items, memory: Bytes) -> Sample:
    """Return the sample of a message; its arrays lie in ``memory``."""
    contents = []
    for array, (dtype, shape) in zip(fields.arrays, forms_of(fields), strict=True):
        end = array.offset + size_of([(dtype, shape)])
        contents.append(memory[array.offset : end].view(dtype).reshape(shape))
    return sample_with(fields, contents)
