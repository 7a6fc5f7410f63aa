"""The RLX protocol, version 1: what a client and a worker say to each other.

``framing``     where a message starts and ends in the byte stream
``npz``         one array as the bytes of a compressed ``.npz`` file
``json_codec``  values as JSON text
``messages``    the requests and the replies
``rewards``     which rewards can be sent, in version 2 too
``text``        what can be written as UTF-8

``docs/protocol.md`` specifies it. Both ends import this package: it needs numpy and nothing else.
"""

from relaax.common.protocol.framing import FrameConnection
from relaax.common.protocol.messages import (
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

__all__ = [
    "Act",
    "FrameConnection",
    "Request",
    "RewardAndAct",
    "RewardAndReset",
    "ScalarMetric",
    "decode_action",
    "decode_request",
    "decode_score",
    "encode_action",
    "encode_request",
    "encode_score",
]
