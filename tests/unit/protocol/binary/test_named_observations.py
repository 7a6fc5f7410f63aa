"""Observations by name in version 2: what arrives, what is refused, and codecs' short cuts."""

import gc
import weakref

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.observations import MAX_ARRAYS
from relaax.protocol import binary
from relaax.protocol.binary.arrays import decode_block, encode_block
from relaax.protocol.binary.codec import ClientCodec, ServerCodec
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

CUT = TRUNCATED | FINAL


def sensors(count, start=0):
    """Return what a camera and a speedometer of ``count`` environments say."""
    return {
        "camera": np.arange(start, start + 6 * count, dtype=np.uint8).reshape(count, 3, 2),
        "speed": np.arange(start, start + count, dtype=np.float32),
    }


def steps(flags, observations, finals=(), rewards=None):
    count = len(flags)
    rewards = np.ones(count) if rewards is None else np.array(rewards)
    return Steps(np.arange(count), np.array(flags, np.uint8), rewards, observations, finals)


def assert_same(found, expected):
    if not isinstance(expected, dict):
        np.testing.assert_array_equal(found, expected)
        return
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def assert_same_steps(found, expected):
    for field in ("environments", "flags", "rewards", "observations", "finals"):
        assert_same(getattr(found, field), getattr(expected, field))


MIXED = steps([0, START, TERMINATED, CUT | START], sensors(3), sensors(1, 50), [1, 0, 2, 3])


def test_they_arrive_as_they_were():
    assert_same_steps(binary.decode_steps(binary.encode_steps(MIXED), 4), MIXED)


def test_one_array_may_have_a_name():
    arrived = binary.decode_steps(binary.encode_steps(steps([0], {"x": np.ones((1, 2))})), 1)
    assert_same(arrived.observations, {"x": np.ones((1, 2))})


def test_names_without_rows_are_the_byte_of_nothing():
    ended = binary.encode_steps(steps([TERMINATED], sensors(0), sensors(0)))
    assert ended == binary.encode_steps(steps([TERMINATED], ()))


def block(*arrays, count=None):
    """Return a block of one-byte arrays: (name, rows)."""
    data = bytes([len(arrays) if count is None else count])
    for name, rows in arrays:
        data += bytes([len(name)]) + name + bytes([2, 1, rows, 0, 0, 0]) + bytes(rows)
    return data


def message(observations):
    """Return a report of one environment, with the bytes of its observations."""
    plain = binary.encode_steps(steps([0], ()))
    return plain[:-2] + observations + b"\0"


@pytest.mark.parametrize(
    ("observations", "reason"),
    [
        (block((b"a", 1), (b"a", 1)), "two arrays are named 'a'"),
        (block((b"a", 1), (b"", 1)), "an array among several has no name"),
        (block((b"", 1), (b"a", 1)), "an array among several has no name"),
        (block((b"a", 1), (b"b", 2)), "different first dimensions"),
        (block((b"a", 2), (b"b", 2)), "1 observations are expected, 2 came"),
        (block((b"a", 0), (b"b", 0)), "1 observations are expected, 0 came"),
        (block((b"\xff\xfe", 1), (b"b", 1)), "the name of an array is not UTF-8"),
        (block((b"\xed\xa0\x80", 1)), "the name of an array is not UTF-8"),
        (block((b"a", 1), count=2), "an array among several has no name"),
        (b"\xff" + block((b"a", 1))[1:], "an array among several has no name"),
        (bytes([2, 1, 65, 2, 1, 1, 0, 0, 0, 7, 200]), "breaks off"),
        (bytes([1, 200, 65]), "breaks off"),
        (block((b"a", 1), (b"b", 1), count=1), "bytes follow after the end|breaks off"),
        (bytes([2, 1, 65, 2, 0, 7, 1, 66, 2, 0, 7]), "different first dimensions"),
    ],
)
def test_invalid_observations_are_refused_with_the_reason(observations, reason):
    with pytest.raises(ProtocolError, match=reason):
        binary.decode_steps(message(observations), 1)


def test_as_many_arrays_as_a_block_holds_arrive():
    most = {f"{number:0255}": np.ones(1, np.uint8) for number in range(MAX_ARRAYS)}
    arrived, _ = decode_block(b"".join(encode_block(most)), 0)
    assert_same(arrived, most)
    with pytest.raises(ValueError, match="1 to 255 arrays"):
        encode_block({**most, "more": np.ones(1)})


@pytest.mark.parametrize("name", ["", "x" * 256, "ü" * 128])
def test_a_name_that_cannot_be_sent_is_the_callers_error(name):
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        encode_block({name: np.ones(1)})


def test_a_message_that_breaks_off_anywhere_is_refused():
    payload = binary.encode_steps(MIXED)
    for end in range(1, len(payload)):
        with pytest.raises(ProtocolError):
            binary.decode_steps(payload[:end], 4)


@pytest.mark.parametrize("plain", [False, True])
def test_changed_bytes_are_read_or_refused_but_never_crash(plain):
    """Also where the message is like the one before, for which there is a short cut."""
    generator = np.random.default_rng(1)
    payload = binary.encode_steps(steps([0] * 4, sensors(4)) if plain else MIXED)
    codec = ServerCodec(4)
    for _ in range(2000):
        codec.decode(payload)
        changed = bytearray(payload)
        for _ in range(generator.integers(1, 4)):
            changed[generator.integers(len(changed))] = generator.integers(256)
        reason = reason_for_refusing(bytes(changed))
        if reason is None:
            expected = binary.decode_steps(bytes(changed), 4)
            assert_same_steps(codec.decode(bytes(changed)), expected)
            continue
        with pytest.raises(ProtocolError) as refused:
            codec.decode(bytes(changed))
        assert str(refused.value) == reason


def reason_for_refusing(payload):
    try:
        binary.decode_steps(payload, 4)
    except ProtocolError as error:
        return str(error)
    return None


def kinds():
    """Observations of two environments, of which each is of another kind than the one before."""
    return [
        sensors(2),
        sensors(2, 9),
        {"speed": sensors(2)["speed"]},
        {"speed": np.ones(2), "camera": sensors(2)["camera"]},
        {"speed": np.ones((2, 1)), "camera": sensors(2)["camera"]},
        {"speed": np.ones(2).astype(">f8"), "camera": sensors(2)["camera"]},
        {"gauge": np.ones(4)[::2], "camera": sensors(2)["camera"][:, ::-1]},
        np.ones((2, 1), np.float32),
        {"a": np.zeros((2, 0))},
    ]


class TestShortCuts:
    def test_a_client_writes_the_bytes_of_the_plain_function(self):
        codec = ClientCodec(2)
        for number, observations in enumerate([*kinds(), *reversed(kinds())]):
            for _ in range(2):
                expected = binary.encode_steps(steps([0, 0], observations, rewards=[number, 0.5]))
                written = codec.encode_all(np.array([number, 0.5]), observations)
                assert binary.decode_steps(written, 2).rewards.tolist() == [number, 0.5]
                assert written == expected

    def test_names_in_another_order_are_the_same_observations(self):
        codec, there = ClientCodec(2), sensors(2)
        codec.encode_all(np.ones(2), there)
        turned = dict(reversed(there.items()))
        written = codec.encode_all(np.ones(2), turned)
        arrived = binary.decode_steps(written, 2).observations
        assert_same(arrived, there)

    def test_a_server_reads_the_same_as_the_plain_function(self):
        codec = ServerCodec(2)
        for number, observations in enumerate([*kinds(), *reversed(kinds())]):
            for _ in range(2):
                payload = binary.encode_steps(steps([0, 0], observations, rewards=[number, -1.0]))
                for form in (payload, memoryview(payload)):
                    assert_same_steps(codec.decode(form), binary.decode_steps(payload, 2))

    def test_a_reward_that_is_not_allowed_is_refused(self):
        codec = ServerCodec(1)
        codec.decode(binary.encode_steps(steps([0], sensors(1))))
        with pytest.raises(ProtocolError, match="a reward is not finite as a 32-bit float"):
            codec.decode(binary.encode_steps(steps([0], sensors(1), rewards=[np.inf])))

    def test_answers_have_the_bytes_of_all_others(self):
        codec = ServerCodec(2)
        for actions in (np.array([1, 2]), np.array([3, 4])):
            asked = codec.decode(binary.encode_steps(steps([0, 0], sensors(2))))
            assert codec.encode(actions, np.zeros(0)) == binary.encode_answers(
                asked.environments, asked.flags, actions, np.zeros(0)
            )


def test_a_codec_keeps_no_array_of_the_messages_that_it_has_sent():
    client = ClientCodec(2)
    observations = sensors(2)
    kept = [weakref.ref(array) for array in observations.values()]
    client.encode_all(np.zeros(2), observations)
    del observations
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
