"""The first bytes of a connection: a token, or another protocol, of which nothing is waited for.

Read as the length of a frame, the first four letters of HTTP and SSH are 512 MiB or more. A TLS
record is not as clear: it may stand for 64 KiB to 72 MiB. The sixth byte decides there. It would be
the second one of a message, and no first message of RLX has a control character there.
"""

from relaax.protocol.connection import Payload

#: No hello begins with it, and no JSON.
TOKEN_HEAD = b"\x07RLX"

#: More than the longest token needs.
MAX_TOKEN_MESSAGE_BYTES = 1024


def encode_token(token: str) -> bytes:
    """Return the payload of the message that shows ``token``; it is not answered."""
    return TOKEN_HEAD + token.encode("ascii")


def shown_token(payload: Payload) -> bytes | None:
    """Return the token that a message shows; None if it is another message."""
    content = bytes(payload)
    return content.removeprefix(TOKEN_HEAD) if content.startswith(TOKEN_HEAD) else None


#: Of requests and of answers, in four letters: as long as the length of a frame.
_HTTP = b"GET |PUT |HEAD|POST|DELE|CONN|OPTI|TRAC|PATC|PROP|HTTP".split(b"|")

#: A client of HTTP/2 begins with "PRI * HTTP/2.0", its server with a frame of settings.
_HTTP_2_PREFACE = b"PRI "
_HTTP_2_SETTINGS = b"\4\0\0\0\0\0"
_SSH = b"SSH-"

_TLS_MAJOR_VERSION = 3
_TLS_LATEST_MINOR_VERSION = 4
_TLS_ALERT, _TLS_HANDSHAKE = 0x15, 0x16
_TLS_HELLOS = (1, 2)
_TLS_ALERT_LEVELS = (1, 2)

#: So many bytes are enough to recognise TLS.
TLS_BYTES = 6

#: So many are enough to recognise a frame of RLX.
RLX_BYTES = 8

#: In a hello, and in a message that shows a token, behind the first byte; of JSON, the first byte.
_RLX = b"RLX"
JSON_BEGINS = b"[ \t\r\n"


def foreign_protocol(first: bytes | bytearray) -> str | None:
    """Return the name of the protocol whose peers begin with ``first``; None for an unknown one.

    For bytes whose first four are not an allowed length of a frame.
    """
    head = bytes(first[:4])
    if head in _HTTP:
        return "HTTP"
    if head == _HTTP_2_PREFACE or (first[:2] == b"\0\0" and first[3:9] == _HTTP_2_SETTINGS):
        return "HTTP/2 (gRPC)"
    if head == _SSH:
        return "SSH"
    return "TLS" if is_tls(first) else None


def is_tls(first: bytes | bytearray) -> bool:
    """Return whether a peer begins with TLS: with a hello, or an alert that refuses ours.

    False while fewer than ``TLS_BYTES`` have come. No first message of RLX is mistaken for it,
    whatever its length is.
    """
    if len(first) < TLS_BYTES:
        return False
    kind, major, minor, sixth = first[0], first[1], first[2], first[5]
    if major != _TLS_MAJOR_VERSION or minor > _TLS_LATEST_MINOR_VERSION:
        return False
    if kind == _TLS_ALERT:
        return first[3:5] == b"\0\2" and sixth in _TLS_ALERT_LEVELS
    return kind == _TLS_HANDSHAKE and sixth in _TLS_HELLOS


def is_plain_rlx(first: bytes | bytearray) -> bool:
    """Return whether a peer begins with a frame of RLX, in either version, where TLS is expected.

    False while fewer than ``RLX_BYTES`` have come.
    """
    if len(first) < RLX_BYTES or foreign_protocol(first) is not None:
        return False
    payload = first[4:]
    return payload[1:4] == _RLX or payload[:1] in JSON_BEGINS
