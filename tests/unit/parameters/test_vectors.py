"""Messages with a vector, against what protobuf's generated code writes and reads."""

import tracemalloc

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from relaax.parameters import bridge_pb2
from relaax.parameters.vectors import UPDATES, VALUES, WithVector
from relaax.replay.wire import STEPS

#: Sizes around those where the length takes another byte.
SIZES = [0, 1, 31, 32, 4095, 4096, 700_000]


def fields_of(number):
    return bridge_pb2.Update(
        computed_with=bridge_pb2.Known(incarnation=2**64 - number - 1, version=number),
        steps=number,
        want_values=bool(number % 2),
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**63])
def test_generated_code_reads_what_is_written(size, number):
    vector = np.random.default_rng(size).normal(size=size).astype(np.float32)
    found = bridge_pb2.Update.FromString(UPDATES.encode(WithVector(fields_of(number), vector)))
    assert found.vector == vector.tobytes()
    found.ClearField("vector")
    assert found == fields_of(number)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**63])
def test_what_generated_code_writes_is_read(size, number):
    vector = np.random.default_rng(size).normal(size=size).astype(np.float32)
    values = bridge_pb2.Values(
        incarnation=7, version=number, global_t=3, vector=vector.tobytes()
    )  # in the middle of others, and behind them
    found = VALUES.decode(values.SerializeToString())
    np.testing.assert_array_equal(found.vector, vector)
    assert (found.fields.version, found.fields.global_t) == (number, 3)


def test_a_message_without_a_vector_has_none():
    values = bridge_pb2.Values(version=5)
    assert VALUES.encode(WithVector(values, None)) == values.SerializeToString()
    found = VALUES.decode(values.SerializeToString())
    assert found.vector is None
    assert found.fields == values


def test_a_vector_that_does_not_lie_together_is_written_in_its_order():
    vector = np.arange(20, dtype=np.float32)[::2]
    data = VALUES.encode(WithVector(bridge_pb2.Values(), vector))
    np.testing.assert_array_equal(VALUES.decode(data).vector, vector)


def test_fields_that_are_not_known_are_skipped():
    """Wire types 5, 1, 0 and 2, of numbers above those in use."""
    unknown = b"\xfd\x01abcd" + b"\xf9\x01abcdefgh" + b"\xf0\x01\xff\x7f" + b"\xf2\x01\x02ab"
    data = VALUES.encode(WithVector(bridge_pb2.Values(version=9), np.ones(2, np.float32)))
    found = VALUES.decode(unknown + data + unknown)
    assert found.fields.version == 9
    assert found.vector.tolist() == [1, 1]


@pytest.mark.parametrize(
    "data",
    [
        b"\x22",
        b"\x22\x05abcd",
        b"\x22\x03abc",
        b"\x10",
        b"\x10\xff",
        b"\x09abc",
        b"\x23",
        b"\xff" * 11,
    ],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises((ValueError, DecodeError)):
        VALUES.decode(data)


def test_every_message_cut_short_is_refused_or_has_less_in_it():
    data = VALUES.encode(WithVector(bridge_pb2.Values(version=300), np.ones(40, np.float32)))
    for end in range(len(data)):
        try:
            found = VALUES.decode(data[:end])
        except (ValueError, DecodeError):
            continue
        assert found.vector is None


def test_a_message_of_steps_of_all_environments_is_read_and_one_of_more_fields_is_not():
    run = b"\x12\x02\x08\x01"
    assert len(STEPS.decode(run * 65_535).fields.runs) == 65_535
    with pytest.raises(ValueError, match="has more than 100000 fields"):
        STEPS.decode(run * 100_001)


def test_reading_takes_no_more_memory_than_the_message():
    """A megabyte of fields took about a hundred."""
    data = b"\x12\x00" * 500_000
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="has more than"):
            STEPS.decode(data)
        assert tracemalloc.get_traced_memory()[1] < len(data)
    finally:
        tracemalloc.stop()
