"""A sample whose arrays lie in a segment, as a message."""

from relaax.bridge.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.segments.room import NoRoom, Room
from relaax.replay.table import Sample
from relaax.replay.wire import arrays_of, fields_of, items_message


def placed_message(sample: Sample, room: Room) -> WithPayload[replay_pb2.Items]:
    """Return a sample as a message that says where its arrays lie; with them if they do not fit."""
    try:
        places = [room.place_of(array) for array in arrays_of(sample)]
    except NoRoom:
        return items_message(sample)
    fields = fields_of(sample, places)
    fields.in_segment = True
    return WithPayload(fields, None)
