"""Connections between processes: gRPC channels and servers, and who may open them.

``channels``         opens channels, with the token and certificate of this process
``guarded_server``   a gRPC server that asks callers for theirs
``channel_options``  gRPC settings that both ends share
``reachability``     pauses between calls that fail, and why a server is not reached
``refusals``         refuses a call, and names its caller
``payloads``         messages that carry many bytes, without protobuf's copies of them
``listening``        sockets that listen where an option says
``access``           tokens and TLS
``grpc_log``         keeps gRPC from writing lines of its own
``tls_refusals``     errors of TLS, in words
"""
