"""Connections between processes: gRPC channels and servers, and access to them.

``channels``         opens channels, with the token and certificate of this process
``guarded_server``   a gRPC server that checks callers' tokens and certificates
``channel_options``  gRPC settings that both ends share
``reachability``     pauses between failed calls, and why a server is not reached
``refusals``         refuses a call, and names its caller
``payloads``         messages with many bytes, without protobuf's copies of them
``listening``        listening sockets at the address of an option
``access``           tokens and TLS
``tls_refusals``     errors of TLS, in words
"""

import os

# gRPC writes lines of its own to standard error, which strangers cause, in any number and with
# words of their choice, before they have shown anything. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
