"""The RLX protocol, version 1: one environment, messages in JSON.

``npz``           one array as the bytes of a compressed ``.npz`` file
``codec``         values as JSON text
``messages``      the requests and the replies
``server_codec``  a server's end of a connection
"""

from relaax.protocol.json.messages import (
    Act,
    Request,
    RewardAndAct,
    RewardAndReset,
    ScalarMetric,
    decode_action,
    decode_request,
    decode_score,
    encode_action,
    encode_request,
    encode_score,
)
from relaax.protocol.json.server_codec import ServerCodec

__all__ = [
    "Act", "Request", "RewardAndAct", "RewardAndReset", "ScalarMetric", "ServerCodec",
    "decode_action", "decode_request", "decode_score", "encode_action", "encode_request",
    "encode_score"
]  # fmt: skip
