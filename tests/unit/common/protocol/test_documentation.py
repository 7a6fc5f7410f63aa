"""docs/protocol.md says what the code does: its byte examples are replayed here."""

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaax.common.protocol import (
    binary,
    decode_action,
    decode_request,
    decode_score,
    encode_action,
    encode_request,
    encode_score,
    framing,
    messages,
)
from relaax.common.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

PAGE = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text()
EXAMPLE = re.compile(
    r"^(Client|Server): `([^\n]+)`\n\n```hex\n(.+?)\n```$", re.MULTILINE | re.DOTALL
)


#: Version 2: what a block shows is said in words above it.
EXAMPLE_2 = re.compile(
    r"^((?:Client|Server): [^`\n]+):\n\n```hex\n(.+?)\n```$", re.MULTILINE | re.DOTALL
)


def frame_of(block: str) -> bytes:
    return b"".join(bytes.fromhex(line.partition("|")[0]) for line in block.splitlines())


def replies(payload: bytes) -> bytes:
    if payload.startswith(b'["reset"'):
        return encode_score(decode_score(payload))
    return encode_action(decode_action(payload))


EXAMPLES = [(who, text, frame_of(block)) for who, text, block in EXAMPLE.findall(PAGE)]
VERSION_2 = [(text, frame_of(block)) for text, block in EXAMPLE_2.findall(PAGE)]
ARRAY_EXAMPLES = [example for example in EXAMPLES if "b64npz" in example[1]]
PLAIN_EXAMPLES = [example for example in EXAMPLES if "b64npz" not in example[1]]


def test_the_page_shows_every_verb_and_all_its_blocks_are_found() -> None:
    assert len(EXAMPLES) == 11
    assert len(EXAMPLES) + len(VERSION_2) == PAGE.count("```hex")
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


BOX = {"type": "Box", "dtype": "float32", "shape": [2]}
NOTHING = np.zeros(0)
PICTURES = np.arange(1, 9, dtype=np.uint8).reshape(2, 2, 2)
FINAL_PICTURE = np.arange(9, 13, dtype=np.uint8).reshape(1, 2, 2)
CUT = TRUNCATED | FINAL | START


def floats(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


def steps(environments: list[int], flags: list[int], rewards: list[float], *blocks: Any) -> Steps:
    observations, finals = blocks if len(blocks) == 2 else (*blocks, ())
    return Steps(
        np.array(environments), np.array(flags, np.uint8), np.array(rewards), observations, finals
    )


def answers(environments: list[int], flags: list[int], actions: list[int], scores: Any) -> bytes:
    return binary.encode_answers(
        np.array(environments), np.array(flags, np.uint8), np.array(actions), np.array(scores)
    )


#: What the words above each block of version 2 mean, written with this project's own functions.
MEANING = [
    binary.encode_hello(
        binary.Hello(
            "00112233445566778899aabbccddeeff", "Corridor", 1, BOX, {"type": "Discrete", "n": 2}
        )
    ),
    binary.encode_welcome(
        binary.Welcome({"type": "Box", "shape": [2]}, {"type": "Discrete", "n": 2})
    ),
    binary.encode_steps(steps([0], [START], [0], floats(0.5, -2))),
    answers([0], [START], [1], NOTHING),
    binary.encode_steps(steps([0], [0], [1], floats(0.25, -1))),
    answers([0], [0], [0], NOTHING),
    binary.encode_steps(steps([0], [TERMINATED], [-0.5], ())),
    answers([0], [TERMINATED], [], [0.5]),
    binary.encode_steps(steps([0, 2], [0, CUT], [0, 3], PICTURES, FINAL_PICTURE)),
    answers([0, 2], [0, CUT], [4, 5], [7.0]),
    binary.encode_metric(binary.Metric("speed", 2.5)),
    binary.encode_metric(binary.Metric("speed", 2.5, 7.0)),
    binary.encode_error(binary.ErrorCode.GO_ELSEWHERE, "connect again"),
]


@pytest.mark.parametrize(
    ("example", "payload"),
    list(zip(VERSION_2, MEANING, strict=True)),
    ids=lambda value: str(value)[:40],
)
def test_the_code_writes_the_bytes_of_version_2(example: tuple[str, bytes], payload: bytes) -> None:
    assert example[1] == struct.pack("<I", len(payload)) + payload


def test_the_code_reads_the_bytes_of_version_2() -> None:
    payloads = [frame[4:] for _, frame in VERSION_2]
    hello = binary.decode_hello(payloads[0])
    assert (hello.environment, hello.environments, hello.observation_space) == ("Corridor", 1, BOX)
    assert binary.decode_welcome(payloads[1]).action_space == {"type": "Discrete", "n": 2}
    first = binary.decode_steps(payloads[2], 1)
    assert (first.flags.tolist(), np.asarray(first.observations).tolist()) == ([START], [[0.5, -2]])
    assert binary.decode_answers(payloads[3]).actions.tolist() == [1]
    assert binary.decode_steps(payloads[4], 1).rewards.tolist() == [1.0]
    last = binary.decode_steps(payloads[6], 1)
    assert (last.flags.tolist(), last.rewards.tolist()) == ([TERMINATED], [-0.5])
    assert binary.decode_answers(payloads[7]).scores.tolist() == [0.5]
    pictures = binary.decode_steps(payloads[8], 3)
    assert (pictures.environments.tolist(), pictures.flags.tolist()) == ([0, 2], [0, CUT])
    np.testing.assert_array_equal(pictures.observations, PICTURES)
    np.testing.assert_array_equal(pictures.finals, FINAL_PICTURE)
    both = binary.decode_answers(payloads[9])
    assert (both.actions.tolist(), both.scores.tolist()) == ([4, 5], [7.0])
    assert binary.decode_metric(payloads[11]) == binary.Metric("speed", 2.5, 7.0)
    with pytest.raises(binary.Error, match="connect again") as said:
        binary.raise_if_error(payloads[12])
    assert said.value.code == binary.ErrorCode.GO_ELSEWHERE


def test_the_codes_of_errors_on_the_page_are_those_of_the_code() -> None:
    section = PAGE[PAGE.index("## Errors") : PAGE.index("## Episodes")]
    codes = {int(code) for code in re.findall(r"^\| (\d) \| [a-z].*\|$", section, re.MULTILINE)}
    assert codes >= {int(code) for code in binary.ErrorCode}
