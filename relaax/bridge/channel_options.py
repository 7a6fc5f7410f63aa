"""gRPC settings that both ends of the bridge share."""

#: Networks outgrow gRPC's default limit of 4 MiB a message; -1 means no limit.
MESSAGE_SIZE = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]

#: A worker finds a restarted parameter server within about a second; gRPC's default backs off to
#: two minutes. Keepalive notices a peer that vanished without closing.
CLIENT = [
    *MESSAGE_SIZE,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]

#: Without so_reuseport=0 a second parameter server could silently share the port.
SERVER = [
    *MESSAGE_SIZE,
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
]
