"""The registry of an address."""

import socket

from relaax.address import Address
from relaax.names.etcd import EtcdNames
from relaax.names.paths import ETCD, NamedPlace
from relaax.names.registry import Registry
from relaax.names.stub import NamesStub

#: Addresses to listen at that others cannot connect to.
_ALL = ("0.0.0.0", "::")  # noqa: S104

#: Any port: nothing is sent there.
_PORT = 9


def registry_at(address: str) -> Registry:
    """Return the registry at ``etcd://HOST:PORT``, or at a parameter server's ``HOST:PORT``."""
    if address.startswith(ETCD):
        return EtcdNames(address.removeprefix(ETCD))
    return NamesStub(address)


def reachable_address(address: Address, place: NamedPlace) -> Address:
    """Return the address at which others reach a server that listens at ``address``.

    Where it listens at all addresses of this machine, that is the one on the way to the registry.
    """
    if address.host not in _ALL:
        return address
    family, kind, _, _, where = socket.getaddrinfo(
        place.address.host, _PORT, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind) as probe:
        probe.connect(where)
        return Address(str(probe.getsockname()[0]), address.port)
