"""docs/protocol.md says what the code does: its byte examples are replayed here."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from relaax.common.protocol import (
    decode_action,
    decode_request,
    decode_score,
    encode_action,
    encode_request,
    encode_score,
    framing,
    messages,
)

PAGE = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text()
EXAMPLE = re.compile(
    r"^(Client|Server): `([^\n]+)`\n\n```hex\n(.+?)\n```$", re.MULTILINE | re.DOTALL
)


def frame_of(block: str) -> bytes:
    return b"".join(bytes.fromhex(line.partition("|")[0]) for line in block.splitlines())


def replies(payload: bytes) -> bytes:
    if payload.startswith(b'["reset"'):
        return encode_score(decode_score(payload))
    return encode_action(decode_action(payload))


EXAMPLES = [(who, text, frame_of(block)) for who, text, block in EXAMPLE.findall(PAGE)]
ARRAY_EXAMPLES = [example for example in EXAMPLES if "b64npz" in example[1]]
PLAIN_EXAMPLES = [example for example in EXAMPLES if "b64npz" not in example[1]]


def test_the_page_shows_every_verb_and_all_its_blocks_are_found() -> None:
    assert len(EXAMPLES) == PAGE.count("```hex") == 11
    verbs = {(who, text.split('"')[1]) for who, text, _ in EXAMPLES}
    assert verbs == {("Server", "act"), ("Server", "reset")} | {
        ("Client", verb) for verb in messages._REQUEST_PARSERS
    }


@pytest.mark.parametrize(("who", "text", "frame"), EXAMPLES)
def test_the_bytes_are_the_text_in_a_frame(who: str, text: str, frame: bytes) -> None:
    assert frame == struct.pack("<I", len(text)) + text.encode()


@pytest.mark.parametrize(("who", "text", "frame"), PLAIN_EXAMPLES)
def test_the_code_reads_and_writes_the_bytes(who: str, text: str, frame: bytes) -> None:
    payload = frame[4:]
    if who == "Client":
        assert encode_request(decode_request(payload)) == payload
    else:
        assert replies(payload) == payload


def test_the_array_of_the_page_is_what_the_page_says() -> None:
    ((_, _, frame),) = ARRAY_EXAMPLES
    action = decode_action(frame[4:])
    assert action.dtype == np.float32
    assert action.tolist() == [0.5, -0.25]


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    limits = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert f"{framing.DEFAULT_MAX_FRAME_BYTES:,}" in limits["payload of a frame"]
    assert messages.DEFAULT_MAX_STATE_BYTES == 64 * 2**20
    assert limits["all arrays of one state, unpacked"].startswith("64 MiB")
    seconds = f"{framing.DEFAULT_FRAME_TIMEOUT_S:g} seconds"
    assert limits["time from the first byte of a frame to its last"] == seconds
