"""What holds for all that is written, and for all bytes that are read."""

import contextlib
import json
import math
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from relaax.checkpoints.manifest import manifest_name, step_of_data, step_of_manifest
from relaax.configuration.option_kinds import directory_name
from relaax.errors import ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import Error, Hello, Metric
from relaax.protocol.first_bytes import foreign_protocol, is_tls
from relaax.protocol.json import ServerCodec, codec, npz
from relaax.steps import Steps

MOST_BYTES = 64 * 1024

#: The same inputs in each run, and few of them: the fuzzer looks for more.
few = settings(derandomize=True, max_examples=25, deadline=None, database=None)

NUMBERS = st.sampled_from([np.dtype(name) for name in ("?", "u1", "<i2", "<i8", "<f4", "<f8")])
FINITE = {"allow_nan": False, "allow_infinity": False}


FEW = st.integers(0, 3)


def arrays_of(rows=FEW):
    shapes = st.tuples(rows, st.integers(0, 3), st.integers(0, 3))
    return NUMBERS.flatmap(
        lambda dtype: arrays.arrays(dtype, shapes, elements=arrays.from_dtype(dtype, **FINITE))
    )


def same(left, right):
    return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


@few
@given(arrays_of())
def test_an_array_of_version_1_comes_back_as_it_was(array):
    assert same(npz.load(npz.dump(array), MOST_BYTES), array)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(**FINITE) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@few
@given(JSON)
def test_a_state_of_version_1_comes_back_as_it_was(state):
    if "b64npz" not in json.dumps(state):
        assert codec.decode(codec.encode(state)) == state


@few
@given(st.binary(max_size=200))
def test_no_bytes_are_anything_but_a_message_of_version_1_or_refused(data):
    with contextlib.suppress(ProtocolError):
        ServerCodec(MOST_BYTES).decode(data)


@few
@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 6, 12]), min_size=1, max_size=5).flatmap(
        lambda flags: st.tuples(
            st.just(flags),
            arrays_of(st.just(sum((flag & 6) == 0 or bool(flag & 1) for flag in flags))),
            arrays_of(st.just(sum(bool(flag & 8) for flag in flags))),
            st.lists(st.floats(-1e30, 1e30), min_size=len(flags), max_size=len(flags)),
        )
    )
)
def test_steps_of_version_2_come_back_as_they_were(drawn):
    flags, observations, finals, rewards = drawn
    steps = Steps(
        np.arange(len(flags)), np.array(flags, np.uint8), np.array(rewards), observations, finals
    )
    try:
        found = binary.decode_steps(binary.encode_steps(steps), len(flags))
    except ProtocolError:
        return  # flags that do not go together
    assert same(found.rewards, steps.rewards)
    assert len(found.observations) == len(observations)
    if len(observations):
        assert same(found.observations, observations)


@few
@given(st.binary(min_size=1, max_size=200), st.sampled_from([b"", b"\1RLX\2\0\0\0", b"\3\0\1\0"]))
def test_no_bytes_are_anything_but_a_message_of_version_2_or_refused(data, head):
    server = binary.ServerCodec(2)
    for decode in (binary.decode_hello, server.decode, binary.decode_answers):
        with contextlib.suppress(ProtocolError, Error):
            decode(head + data)


texts = st.text(max_size=40)


@few
@given(texts, texts, st.integers(1, 65_535))
def test_a_hello_comes_back_as_it_was_and_is_no_other_protocol(run_id, environment, count):
    hello = Hello(run_id, environment, count)
    payload = binary.encode_hello(hello)
    assert binary.decode_hello(payload) == hello
    frame = len(payload).to_bytes(4, "little") + payload
    assert foreign_protocol(frame) is None


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from([b"[", b" [", b"\1RLX", b"\2{", b'["act"']))
def test_no_length_of_a_first_message_makes_it_tls(length, beginning):
    assert not is_tls(length.to_bytes(4, "little") + beginning + b"       ")


@few
@given(st.text(min_size=1, max_size=60), st.floats(**FINITE), st.none() | st.floats(**FINITE))
def test_a_metric_comes_back_as_it_was(name, y, x):
    if len(name.encode()) <= binary.messages.MAX_NAME_BYTES:
        found = binary.decode_metric(binary.encode_metric(Metric(name, y, x)))
        assert (found.name, found.y, found.x) == (name, y, x)
        assert math.isfinite(found.y)


ESCAPES = [
    "..", ".", "", "/", "../a", "a/../../b", "/etc/passwd", "a/b", "a\0b", "..\\a", "~", "a\ud800",
]  # fmt: skip


@few
@given(st.sampled_from(ESCAPES) | st.text(max_size=20))
def test_a_name_of_a_run_or_a_replay_stays_in_its_directory(name):
    base = Path("/base")
    try:
        accepted = directory_name(name)
    except ValueError:
        return
    assert (base / accepted).parent == base
    assert Path(f"{base}/{accepted}").resolve().parent == base
    assert "\0" not in accepted


@few
@given(st.sampled_from(ESCAPES) | st.text(max_size=20))
def test_only_names_that_checkpoints_have_are_those_of_checkpoints(name):
    """A manifest names its data: the name is compared with this form before it is opened."""
    for text in (name, f"cp-1.{name}", f"{name}/cp-1.0123456789ab.safetensors", f"cp-{name}.json"):
        step = step_of_data(text)
        assert step is None or Path(text).name == text
        step = step_of_manifest(text)
        assert step is None or manifest_name(step) == text
