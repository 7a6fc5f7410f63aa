"""gRPC settings that both ends of the bridge share."""

Option = tuple[str, int]

#: What a server takes in one message where it does not know how large its messages are.
MOST_BYTES = 256 * 1024 * 1024

#: What a message may hold beside its numbers: gRPC's default for a whole one.
_BESIDE_BYTES = 4 * 1024 * 1024

#: The settings have 32 bits; a longer message than that has no limit.
_UNLIMITED, _MOST_IN_A_SETTING = -1, 2**31 - 1

#: Bits of the ways to compress that are allowed: of none at all. 400 KB that unpack to 400 MB are
#: refused as they are. Nothing here compresses.
UNCOMPRESSED: list[Option] = [("grpc.compression_enabled_algorithms_bitset", 1)]

#: Keepalive notices a peer that vanished without closing, on either end: a silent one is asked
#: again and again, where gRPC's default gives up asking after two pings without data between them.
KEEPALIVE: list[Option] = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]

#: A worker finds a restarted parameter server within about a second; gRPC's default backs off to
#: two minutes. What a client receives it has asked for, at an address that it was given.
CLIENT: list[Option] = [
    ("grpc.max_send_message_length", _UNLIMITED),
    ("grpc.max_receive_message_length", _UNLIMITED),
    *UNCOMPRESSED,
    *KEEPALIVE,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def server(most_bytes: int = MOST_BYTES) -> list[Option]:
    """Return the settings of a server that takes messages of at most ``most_bytes``."""
    return [
        ("grpc.max_send_message_length", _UNLIMITED),
        ("grpc.max_receive_message_length", most_bytes),
        *UNCOMPRESSED,
        *KEEPALIVE,
        # Without it a second parameter server could silently share the port.
        ("grpc.so_reuseport", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def most_bytes_of(size: int) -> int:
    """Return how large messages may be that carry ``size`` bytes of numbers.

    Twice as large, so that numbers of another network are refused by what knows its size: gRPC's
    own refusal does not say what is wrong.
    """
    most = 2 * size + _BESIDE_BYTES
    return most if most <= _MOST_IN_A_SETTING else _UNLIMITED
