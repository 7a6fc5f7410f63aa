"""Names of processes with leases: a process that dies leaves its name when its lease ends.

``registry``    what a registry does, and the thread that keeps a name alive
``paths``       what is allowed as a name, a value and a time
``leases``      the names in the memory of a server
``service``     these behind gRPC, at the port of a parameter server
``stub``        the client of that
``etcd``        the same by an etcd
``places``      the registry of an address: one module that needs both clients
"""

from relaax.names.paths import NamedPlace
from relaax.names.registry import NameTaken, Registration, Registry, RegistryAway

__all__ = ["NameTaken", "NamedPlace", "Registration", "Registry", "RegistryAway"]
