"""The RLX protocol between a client and a worker. Both ends import this package.

``connection``     the interface of both ends: whole messages in both directions
``framing``        a connection over a stream socket: where a message starts and ends in the bytes
``first_bytes``    recognises tokens, peers of other protocols, and peers without TLS
``tls_socket``     a socket that speaks TLS
``json``           version 1: one environment, messages in JSON
``binary``         version 2: many environments on one connection, arrays as raw bytes
``nesting``        limits on the size and depth of JSON

``docs/protocol.md`` specifies it. It needs numpy and nothing else.
"""

from relaax.protocol.connection import MessageConnection, PeerClosed
from relaax.protocol.framing import FrameConnection

__all__ = ["FrameConnection", "MessageConnection", "PeerClosed"]
