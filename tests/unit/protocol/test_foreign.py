"""Peers that speak another protocol are recognised by their first bytes; no peer of RLX is."""

import json
import struct

import pytest
from tls_hello import client_hello

from relaax.protocol.binary import Hello, encode_hello
from relaax.protocol.foreign import TLS_BYTES, foreign_protocol, is_tls
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
def test_what_is_not_known_has_no_name(first: bytes) -> None:
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
