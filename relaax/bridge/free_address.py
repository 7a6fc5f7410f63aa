"""Whether an address is free, and how gRPC takes it and no other."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace

from relaax.address import Address

#: All IPv4 addresses of this machine, and all of IPv6.
_ALL_OF_IPV4, _ALL_OF_IPV6 = "0.0.0.0", "::"  # noqa: S104 - the user's own


def require_free(address: Address) -> None:
    """Raise OSError with the system's reason: gRPC logs its own and raises without one."""
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, where = infos[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(where)


@contextlib.contextmanager
def taken_alone(address: Address) -> Iterator[Address]:
    """Yield the address that gRPC should listen at; it takes none but that meanwhile.

    gRPC takes 0.0.0.0 for all addresses of IPv6, too, and listens at those of IPv4 alone where they
    are taken: so they are, until it listens.
    """
    if address.host != _ALL_OF_IPV4:
        yield address
        return
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # there is no IPv6, or another program listens there
            holder = socket.create_server(
                (_ALL_OF_IPV6, address.port), family=socket.AF_INET6, backlog=0
            )
            held.enter_context(holder)
            address = replace(address, port=holder.getsockname()[1])
        yield address
