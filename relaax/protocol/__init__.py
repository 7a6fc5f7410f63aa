"""The RLX protocol: what a client and a worker say to each other. Both ends import this package.

``connection``     what both ends speak over: whole messages in both directions
``framing``        a connection over a stream socket: where a message starts and ends in the bytes
``foreign``        how peers begin that speak another protocol, or no TLS where that is spoken
``tls_socket``     a socket that speaks TLS
``token_message``  the message that shows a token, before either version begins
``json``           version 1: one environment, messages in JSON
``binary``         version 2: many environments on one connection, arrays as raw bytes
``nesting``        how much JSON may hold, and how deep in each other

``docs/protocol.md`` specifies it. It needs numpy and nothing else.
"""

from relaax.protocol.connection import MessageConnection, PeerClosed
from relaax.protocol.framing import FrameConnection

__all__ = ["FrameConnection", "MessageConnection", "PeerClosed"]
