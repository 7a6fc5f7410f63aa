"""Samples as messages: each byte once, and nothing is read outside of what came."""

import numpy as np
import pytest

from relaax.replay.segments import TOKEN_BYTES, NoRoom, Room, placed_message
from relaax.replay.table import Sample
from relaax.replay.wire import ITEMS, items_message, sample_in, sample_of

COUNT, STACK, SIDE = 5, 4, 6
FRAMES = np.arange(COUNT * (STACK + 1) * SIDE * SIDE, dtype=np.uint8)
FRAME_BYTES = SIDE * SIDE


def sample_with(**columns):
    keys = np.arange(COUNT, dtype=np.int64)
    return Sample(keys, np.full(COUNT, 0.25), columns, items=9, least_probability=0.125)


def stacks(empty=np.empty):
    """Two stacks of each item that have all frames but one in common."""
    frames = empty((COUNT, STACK + 1, SIDE, SIDE), np.dtype(np.uint8))
    frames[...] = FRAMES.reshape(frames.shape)
    return {"observation": frames[:, :-1], "next_observation": frames[:, 1:]}


def sent(sample):
    """The message of a sample as it arrives."""
    return ITEMS.decode(ITEMS.encode(items_message(sample)))


def require_equal(found, sample):
    assert (found.items, found.least_probability) == (9, 0.125)
    np.testing.assert_array_equal(found.keys, sample.keys)
    np.testing.assert_array_equal(found.probabilities, sample.probabilities)
    assert found.columns.keys() == sample.columns.keys()
    for name, column in sample.columns.items():
        np.testing.assert_array_equal(found.columns[name], column)
        assert found.columns[name].dtype == column.dtype.newbyteorder("=")


COLUMNS = {
    "stacks that overlap": stacks(),
    "one of two stacks": {"observation": stacks()["observation"]},
    "every second row": {"speed": np.arange(40.0).reshape(10, 4)[::2]},
    "rows turned around": {"speed": np.arange(20.0).reshape(5, 4)[::-1]},
    "a part of something of another form": {"speed": np.arange(40.0).reshape(5, 8)[:, 3]},
    "the same array twice": dict.fromkeys(("a", "b"), np.arange(10.0).reshape(5, 2)),
    "big-endian numbers": {"speed": np.arange(5, dtype=">f4")},
    "nothing": {"speed": np.zeros((5, 0), np.float32)},
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_a_sample_that_is_sent_is_the_same(columns):
    sample = sample_with(**columns)
    require_equal(sample_of(sent(sample)), sample)


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_a_sample_in_shared_memory_is_the_same(columns):
    memory, sample = np.zeros(8192, np.uint8), sample_with(**columns)
    message = placed_message(sample, Room(memory))
    assert message.fields.in_segment
    require_equal(sample_in(message.fields, memory), sample)


def test_stacks_that_overlap_are_sent_once():
    (payload,) = sent(sample_with(**stacks())).payload
    assert len(payload) == COUNT * (8 + 8 + (STACK + 1) * FRAME_BYTES)


def test_arrays_made_in_shared_memory_are_not_copied():
    memory = np.zeros(TOKEN_BYTES + 2 * COUNT * (STACK + 1) * FRAME_BYTES, np.uint8)
    room = Room(memory)
    columns = stacks(room.empty)
    places = [room.place_of(column) for column in columns.values()]
    assert places[1].offset == places[0].offset + FRAME_BYTES
    assert all(np.shares_memory(column, memory) for column in columns.values())


def test_a_part_of_shared_memory_that_overflows_is_sent_alone():
    """What lies in the memory already is a part of all of it."""
    memory = np.zeros(TOKEN_BYTES + COUNT * (STACK + 1) * FRAME_BYTES + 64, np.uint8)
    room = Room(memory)
    sample = sample_with(**stacks(room.empty), more=np.zeros((COUNT, 100)))
    with pytest.raises(NoRoom):
        room.place_of(sample.columns["more"])
    message = placed_message(sample, room)
    assert not message.fields.in_segment
    arrived = ITEMS.decode(ITEMS.encode(message))
    assert len(arrived.payload[0]) <= COUNT * (16 + 2 * STACK * FRAME_BYTES + 800)
    require_equal(sample_of(arrived), sample)


WRONG = {
    "begins behind the end": {"offset": 10_000},
    "ends behind the end": {"shape": [5, 400]},
    "has more elements than there are numbers": {"shape": [2**40, 2**40]},
    "leads outside by its strides": {"shape": [5, 4], "strides": [4000, 4]},
    "has too few strides": {"shape": [5, 4], "strides": [16]},
    "is of objects": {"shape": [5], "dtype": "|O"},
    "is of no type": {"dtype": "none"},
    "is of dates": {"shape": [5], "dtype": "<M8[s]"},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_an_array_that_does_not_lie_in_its_message_is_refused(changes):
    message = sent(sample_with(speed=np.zeros((5, 4), np.float32)))
    array = message.fields.arrays[-1]
    for name, value in changes.items():
        if isinstance(value, list):
            del getattr(array, name)[:]
            getattr(array, name).extend(value)
        else:
            setattr(array, name, value)
    with pytest.raises(ValueError, match=r"."):
        sample_of(message)


@pytest.mark.parametrize(("which", "dtype"), [(0, "<f8"), (1, "<i8"), (0, "<u8")])
def test_keys_and_probabilities_are_of_their_types(which, dtype):
    message = sent(sample_with(speed=np.zeros((5, 4), np.float32)))
    message.fields.arrays[which].dtype = dtype
    with pytest.raises(ValueError, match="keys and probabilities"):
        sample_of(message)


def test_a_message_that_was_cut_is_refused():
    message = sent(sample_with(speed=np.zeros((5, 4), np.float32)))
    cut = type(message)(message.fields, [message.payload[0][:-1]])
    with pytest.raises(ValueError, match="does not lie within its message"):
        sample_of(cut)
