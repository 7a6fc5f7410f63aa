"""gRPC settings that both ends of the bridge share."""

import resource
from collections.abc import Iterable
from urllib.parse import quote, unquote

from relaax.address import Address

Option = tuple[str, int | str]

#: The largest message of a server that does not know how large its messages are.
MOST_BYTES = 256 * 1024 * 1024

#: The size of a message beside its numbers: gRPC's default for a whole one.
_BESIDE_BYTES = 4 * 1024 * 1024

#: The settings have 32 bits; a longer message than that has no limit.
_UNLIMITED, _MOST_IN_A_SETTING = -1, 2**31 - 1

#: Bits of the allowed compressions: no compression. 400 KB that unpack to 400 MB are refused as
#: they are. Nothing here compresses.
UNCOMPRESSED: list[Option] = [("grpc.compression_enabled_algorithms_bitset", 1)]

#: Keepalive notices a peer that vanished without closing, on either end: a silent one is asked
#: again and again, where gRPC's default gives up asking after two pings without data between them.
KEEPALIVE: list[Option] = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
]

#: A connection that has not begun HTTP/2 by then, after TLS where that is spoken, is closed. gRPC's
#: default is two minutes.
HANDSHAKE_MS = 10_000

#: A connection without a call for so long is closed. No call is lost by that: the caller is asked
#: to leave, and connects again with its next call.
IDLE_MS = 300_000

#: Which share of its descriptors a server gives to connections: files need some, too.
_OF_CONNECTIONS = 0.75

#: An attempt to connect, with TLS and the beginning of HTTP/2, may take so long before another one
#: is made: gRPC calls this the least backoff, and has 20 seconds.
_CONNECT_MS = 2000

#: Without these, gRPC uses the proxy of ``https_proxy`` and similar variables, also for a server on
#: the same machine. The last one lists addresses that have a proxy: none.
DIRECT: list[Option] = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.address_http_proxy_enabled_addresses", ""),
]

#: A worker finds a restarted parameter server within about a second; gRPC's default backs off to
#: two minutes. A client limits no messages: it has asked for them, at a given address.
CLIENT: list[Option] = [
    ("grpc.max_send_message_length", _UNLIMITED),
    ("grpc.max_receive_message_length", _UNLIMITED),
    *UNCOMPRESSED,
    *KEEPALIVE,
    *DIRECT,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


#: The prefix of a call's user agent that names the caller's training.
_OF_RUN = "relaax-run/"


def client(proxy: Address | None, run: str | None = None) -> list[Option]:
    """Return the settings of a client that connects through an HTTP proxy; directly if None.

    Each call names the training ``run`` of the caller, if that is known.
    """
    options = list(CLIENT)
    if run is not None:
        options.append(("grpc.primary_user_agent", f"{_OF_RUN}{quote(run, safe='')}"))
    if proxy is None:
        return options
    # Of an option that is there twice, gRPC takes the first.
    return [("grpc.enable_http_proxy", 1), ("grpc.http_proxy", f"http://{proxy}"), *options]


def run_of_caller(metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    """Return the training of the caller of a call with this metadata, if it is there."""
    for key, value in metadata:
        if key == "user-agent" and str(value).startswith(_OF_RUN):
            return unquote(str(value).removeprefix(_OF_RUN).split(" ")[0]) or None
    return None


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
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
        ("grpc.max_connection_idle_ms", IDLE_MS),
        ("grpc.max_allowed_incoming_connections", _most_connections()),
    ]


def _most_connections() -> int:
    """Return how many connections there may be: further ones are closed, and try again."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return _MOST_IN_A_SETTING
    return min(int(_OF_CONNECTIONS * descriptors), _MOST_IN_A_SETTING)


def most_bytes_of(size: int) -> int:
    """Return how large messages may be that carry ``size`` bytes of numbers.

    Twice as large, so that numbers of another network are refused by code that knows its size:
    gRPC's own refusal does not give the reason.
    """
    most = 2 * size + _BESIDE_BYTES
    return most if most <= _MOST_IN_A_SETTING else _UNLIMITED
