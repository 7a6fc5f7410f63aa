import json
import random
from typing import Any

import numpy as np
import pytest

from relaax.errors import ProtocolError
from relaax.protocol.json import codec as json_codec
from relaax.protocol.nesting import MAX_MEMBERS, MAX_PARTS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ([1.5, [2, None]], "[1.5, [2, null]]"),
        ({"a": 1, "b": [2]}, '{"a": 1, "b": [2]}'),
        ("Grüße", '"Gr\\u00fc\\u00dfe"'),
    ],
)
def test_text_is_what_json_dumps_writes(value: Any, text: str) -> None:
    assert json_codec.encode(value) == text == json.dumps(value)
    assert json_codec.decode(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5), "0.5"),
        (np.float64(0.25), "0.25"),
        (np.float16(2), "2.0"),
        (np.int64(-3), "-3"),
        (np.uint8(200), "200"),
        (np.bool_(True), "true"),
        (np.longdouble(1.5), "1.5"),
        ([np.int32(1), {"x": np.float32(1)}], '[1, {"x": 1.0}]'),
    ],
)
def test_numpy_scalars_are_plain_numbers(value: Any, text: str) -> None:
    assert json_codec.encode(value) == text


def test_arrays_survive_anywhere_in_a_value() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    decoded = json_codec.decode(json_codec.encode({"image": image, "more": [1, [image]]}))
    np.testing.assert_array_equal(decoded["image"], image)
    np.testing.assert_array_equal(decoded["more"][1][0], image)
    assert decoded["image"].dtype == np.uint8


def test_the_array_that_the_code_of_2017_wrote_is_read() -> None:
    text = (
        '{"b64npz": "UEsDBC0AAAAIAAAAIQASmZ2Y//////////8HABQAb2JqLm5weQEAEACIAAAAAAAAAEwAAAAAAAAA'
        "m+wX6hsQychQxlCtnpJanFykbqWgbpNmoq6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkaRjqaOgq1ChQA"
        "LgYGBnsGhoZ9AFBLAQItAy0AAAAIAAAAIQASmZ2YTAAAAIgAAAAHAAAAAAAAAAAAAACAAQAAAABvYmoubnB5UEsF"
        'BgAAAAABAAEANQAAAIUAAAAAAA=="}'
    )
    decoded = json_codec.decode(text)
    assert decoded.dtype == np.float32
    assert decoded.tolist() == [0.5, -0.25]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "the state is nan"),
        ([0.0, {"x": [float("-inf")]}], r"the state\[1\]\['x'\]\[0\] is -inf"),
        ([np.float32("inf")], r"the state\[0\] is inf"),
        ([np.float32([1, np.nan])], "the state cannot be sent: .* holds NaN"),
    ],
)
def test_infinite_numbers_and_nan_are_not_encoded(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        json_codec.encode(value, what="the state")


def test_endless_values_are_not_encoded() -> None:
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(ValueError, match="the state cannot be sent: Circular"):
        json_codec.encode(itself, what="the state")
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="the state is nested too deeply"):
        json_codec.encode(deep, what="the state")


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, [1j]])
def test_other_types_are_not_encoded(value: Any) -> None:
    with pytest.raises(TypeError, match="the state cannot be sent: "):
        json_codec.encode(value, what="the state")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2", "not JSON"),
        ("[1] [2]", "not JSON"),
        ("\ufeff[1]", "not JSON"),
        ("NaN", "NaN is not allowed"),
        ("[Infinity]", "Infinity is not allowed"),
        ('{"x": -Infinity}', "-Infinity is not allowed"),
        ("[1e999]", "1e999 is too large"),
        ("9" * 5000, "not JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"b64npz": 5}', "with a string and no more"),
        ('{"b64npz": "", "x": 1}', "with a string and no more"),
        ('{"b64npz": "*"}', "not base64"),
        ('{"b64npz": "Gr\\u00fc"}', "not base64"),
        ('{"b64npz": ""}', "npz archive"),
        ('{"b64npz": "AAAA"}', "npz archive"),
    ],
)
def test_undecodable_text_is_a_protocol_error(text: str, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        json_codec.decode(text)


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a[":', "}")])
def test_lists_and_objects_lie_in_each_other_64_levels_deep(opens: str, closes: str) -> None:
    assert json_codec.decode(opens * 64 + "1" + closes * 64)
    with pytest.raises(ProtocolError, match="nested too deeply: at most 64 levels"):
        json_codec.decode(opens * 65 + "1" + closes * 65)


@pytest.mark.parametrize("part", ["[]", "{}", '""'])
def test_json_holds_so_many_lists_objects_and_strings(part: str) -> None:
    json_codec.decode("[" + f"{part}," * (MAX_PARTS - 2) + part + "]")
    with pytest.raises(ProtocolError, match="too much: at most 200,000 lists, objects and strings"):
        json_codec.decode("[" + f"{part}," * (MAX_PARTS - 1) + part + "]")


def test_json_holds_so_many_numbers() -> None:
    assert len(json_codec.decode("[" + "1," * MAX_MEMBERS + "1]")) == MAX_MEMBERS + 1
    with pytest.raises(ProtocolError, match="too much: at most 1,000,000 numbers; an array"):
        json_codec.decode("[" + "1," * (MAX_MEMBERS + 1) + "1]")


def test_many_lists_beside_each_other_and_brackets_in_texts_are_not_deep() -> None:
    value = [[1, {"a": 2}]] * 1000 + ["[" * 1000, '"\\[{' * 1000]
    assert json_codec.decode(json.dumps(value)) == value


def test_bytes_that_are_not_utf_8_are_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="not UTF-8"):
        json_codec.decode_utf8('["act", "1"]'.encode("utf-16"))


def test_the_limit_counts_all_arrays_of_a_value() -> None:
    kilobyte = np.zeros(10_000, np.uint8)
    assert len(json_codec.decode(json_codec.encode([kilobyte] * 2), 20_000)) == 2
    with pytest.raises(ProtocolError, match="exceeds the limit"):
        json_codec.decode(json_codec.encode([kilobyte] * 3), 20_000)


def test_no_damage_causes_any_other_error() -> None:
    rng = random.Random(1)
    whole = json_codec.encode({"x": np.arange(5), "y": [1.5, None, "text"]}).encode()
    refused = 0
    for _ in range(3000):
        damaged = bytearray(whole[: rng.randint(1, len(whole))])
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            json_codec.decode_utf8(bytes(damaged))
        except ProtocolError:
            refused += 1
    assert refused > 2000
