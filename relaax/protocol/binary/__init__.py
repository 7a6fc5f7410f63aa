"""The RLX protocol, version 2: the same conversation in binary, for many environments at once.

``arrays``         arrays as their dtype, their shape and their bytes
``messages``       hello and welcome, steps and actions, metrics and errors
``codec``          steps and their answers as both ends write and read them, one after another

``docs/protocol.md`` specifies it.
"""

from relaax.protocol.binary.codec import ClientCodec, ServerCodec
from relaax.protocol.binary.messages import (
    MAX_ENVIRONMENTS,
    VERSION,
    Answers,
    Error,
    ErrorCode,
    Hello,
    Metric,
    Welcome,
    decode_answers,
    decode_hello,
    decode_metric,
    decode_steps,
    decode_welcome,
    encode_answers,
    encode_error,
    encode_hello,
    encode_metric,
    encode_steps,
    encode_welcome,
    is_hello,
    raise_if_error,
)

__all__ = [
    "MAX_ENVIRONMENTS", "VERSION", "Answers", "ClientCodec", "Error", "ErrorCode", "Hello",
    "Metric", "ServerCodec", "Welcome", "decode_answers", "decode_hello",
    "decode_metric", "decode_steps", "decode_welcome", "encode_answers", "encode_error",
    "encode_hello", "encode_metric", "encode_steps", "encode_welcome", "is_hello", "raise_if_error"
]  # fmt: skip
