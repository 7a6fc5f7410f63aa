"""The RLX protocol, version 2: the same conversation in binary, for many environments at once.

``arrays``        arrays as their dtype, their shape and their bytes
``messages``      hello and welcome, steps and actions, metrics and errors
``client_codec``  steps and their answers as a client writes and reads them, one after another
``server_codec``  the same for a server
``pattern``       what such messages have in common

``docs/protocol.md`` specifies it.
"""

from relaax.protocol.binary.client_codec import ClientCodec
from relaax.protocol.binary.messages import (
    MAX_ENVIRONMENTS,
    VERSION,
    Answers,
    Error,
    ErrorCode,
    Hello,
    Metric,
    Welcome,
    answer_flags,
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
from relaax.protocol.binary.server_codec import ServerCodec

__all__ = [
    "MAX_ENVIRONMENTS",
    "VERSION",
    "Answers",
    "ClientCodec",
    "Error",
    "ErrorCode",
    "Hello",
    "Metric",
    "ServerCodec",
    "Welcome",
    "answer_flags",
    "decode_answers",
    "decode_hello",
    "decode_metric",
    "decode_steps",
    "decode_welcome",
    "encode_answers",
    "encode_error",
    "encode_hello",
    "encode_metric",
    "encode_steps",
    "encode_welcome",
    "is_hello",
    "raise_if_error",
]
