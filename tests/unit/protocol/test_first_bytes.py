"""Peers that speak another protocol are recognised by their first bytes; no peer of RLX is."""

import json
import struct

import pytest
from json_requests import Act, encode_request
from tls_hello import client_hello

from relaax.protocol.binary import Hello, encode_hello
from relaax.protocol.first_bytes import (
    RLX_BYTES,
    TLS_BYTES,
    encode_token,
    foreign_protocol,
    is_plain_rlx,
    is_tls,
)
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES

TEXTS = {
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n": "HTTP",
    b"HEAD / HTTP/1.0\r\n\r\n": "HTTP",
    b"POST /publish HTTP/1.1\r\n": "HTTP",
    b"PUT /a HTTP/1.1\r\n": "HTTP",
    b"DELETE /a HTTP/1.1\r\n": "HTTP",
    b"OPTIONS * HTTP/1.1\r\n": "HTTP",
    b"CONNECT a:443 HTTP/1.1\r\n": "HTTP",
    b"HTTP/1.1 400 Bad Request\r\n": "HTTP",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "HTTP/2 (gRPC)",
    b"SSH-2.0-OpenSSH_9.2\r\n": "SSH",
}
#: What a server of gRPC says before it has read anything: its settings.
GRPC_SETTINGS = b"\0\0\x24\4\0\0\0\0\0" + bytes(0x24)
ALERT = b"\x15\3\3\0\2\2\x46"


@pytest.mark.parametrize(("first", "name"), TEXTS.items(), ids=lambda value: str(value)[:12])
def test_a_protocol_is_known_by_its_first_four_letters(first: bytes, name: str) -> None:
    assert foreign_protocol(first) == foreign_protocol(first[:4]) == name


@pytest.mark.parametrize("first", TEXTS)
def test_no_frame_that_is_allowed_is_as_long_as_these_letters_say(first: bytes) -> None:
    assert struct.unpack("<I", first[:4])[0] > DEFAULT_MAX_FRAME_BYTES


def test_a_grpc_server_is_known_by_its_settings() -> None:
    assert foreign_protocol(GRPC_SETTINGS) == "HTTP/2 (gRPC)"
    assert struct.unpack("<I", GRPC_SETTINGS[:4])[0] > DEFAULT_MAX_FRAME_BYTES


@pytest.mark.parametrize("first", [client_hello(), ALERT], ids=["hello", "alert"])
def test_tls_is_known_by_six_bytes(first: bytes) -> None:
    assert foreign_protocol(first) == "TLS"
    assert is_tls(first[:TLS_BYTES])
    assert not is_tls(first[: TLS_BYTES - 1])


@pytest.mark.parametrize("first", [b"", b"\0", b"\xff" * 9, b"get /", b"USER anonymous"])
def test_an_unknown_protocol_has_no_name(first: bytes) -> None:
    assert foreign_protocol(first) is None


@pytest.mark.parametrize("header", [client_hello()[:4], ALERT[:4]], ids=["hello", "alert"])
@pytest.mark.parametrize(
    "payload",
    [
        encode_hello(Hello(run_id="", environment="")),
        json.dumps(["act", "[1]"]).encode(),
        json.dumps(["act", "[1]"], indent=1).encode(),
        b"\2{}",
    ],
)
def test_no_first_message_is_mistaken_for_tls_whatever_its_length(
    header: bytes, payload: bytes
) -> None:
    assert not is_tls(header + payload)


FIRST = [encode_hello(Hello("run", "")), encode_token("t" * 20), encode_request(Act([1.0]))]


@pytest.mark.parametrize("payload", [*FIRST, b" \n" + FIRST[2]])
@pytest.mark.parametrize("length", [0, 0x15, 0x16, 0x0316, 0x010316, 1 << 20])
def test_a_first_message_without_tls_is_known_whatever_its_length(payload, length) -> None:
    first = struct.pack("<I", length or len(payload)) + payload
    assert is_plain_rlx(first)
    assert is_plain_rlx(first[:RLX_BYTES])
    assert not is_plain_rlx(first[: RLX_BYTES - 1])


@pytest.mark.parametrize("first", [client_hello(), ALERT + bytes(9), GRPC_SETTINGS, *TEXTS])
def test_nothing_else_is_taken_for_a_first_message_without_tls(first) -> None:
    assert not is_plain_rlx(first)


def test_a_hello_of_tls_is_never_taken_for_a_message_whatever_its_length() -> None:
    for length in range(1 << 16):
        assert not is_plain_rlx(b"\x16\3\1" + struct.pack(">H", length) + b"\1\0\1")
