"""Whether an address is free."""

import socket

from relaax.address import Address


def require_free(address: Address) -> None:
    """Raise OSError with the system's reason: gRPC logs its own and raises without one."""
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, where = infos[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(where)
