"""The message that shows a token: the first one of a connection, before either version begins."""

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
