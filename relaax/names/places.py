"""Which registry an address means."""

from relaax.names.etcd import EtcdNames
from relaax.names.registry import Registry
from relaax.names.stub import NamesStub

#: Before the address of an etcd.
ETCD = "etcd://"


def registry_at(address: str) -> Registry:
    """Return the registry at ``etcd://HOST:PORT``, or at a parameter server's ``HOST:PORT``."""
    if address.startswith(ETCD):
        return EtcdNames(address.removeprefix(ETCD))
    return NamesStub(address)
