"""The RLX protocol, version 1: one environment, messages in JSON.

``npz``           one array as the bytes of a compressed ``.npz`` file
``codec``         values as JSON text
``messages``      the requests and the replies
"""

from relaax.protocol.json.messages import (
    Act,
    Request,
    RewardAndAct,
    RewardAndReset,
    ServerCodec,
    decode_action,
    decode_request,
    decode_score,
    encode_action,
    encode_request,
    encode_score,
)

__all__ = [
    "Act", "Request", "RewardAndAct", "RewardAndReset", "ServerCodec",
    "decode_action", "decode_request", "decode_score", "encode_action", "encode_request",
    "encode_score"
]  # fmt: skip
