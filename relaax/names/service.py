"""Names of a server's memory behind gRPC, beside other services at its port."""

import logging

import grpc

from relaax.names import names_pb2
from relaax.names.leases import Leases, TooManyNames
from relaax.names.registry import NameTaken
from relaax.net.refusals import handlers_of, refuse

_log = logging.getLogger(__name__)

SERVICE = names_pb2.DESCRIPTOR.services_by_name["Names"]


class NamesServicer:
    """Turns gRPC messages into calls of ``leases``, and back."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def register(self, request: names_pb2.Entry, context: grpc.ServicerContext) -> names_pb2.Lease:
        """Register a name."""
        try:
            lease = self._leases.register(request.name, request.value, request.ttl_s)
        except NameTaken as error:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, str(error))
        except TooManyNames as error:
            refuse(_log, context, error, grpc.StatusCode.RESOURCE_EXHAUSTED)
        except ValueError as error:
            refuse(_log, context, error)
        return names_pb2.Lease(id=lease)

    def keep_alive(
        self, request: names_pb2.Lease, context: grpc.ServicerContext
    ) -> names_pb2.Nothing:
        """Prolong a lease."""
        if not self._leases.keep_alive(request.id):
            context.abort(grpc.StatusCode.NOT_FOUND, "the lease has ended")
        return names_pb2.Nothing()

    def withdraw(
        self, request: names_pb2.Lease, context: grpc.ServicerContext
    ) -> names_pb2.Nothing:
        """End a lease."""
        self._leases.withdraw(request.id)
        return names_pb2.Nothing()

    def resolve(self, request: names_pb2.Name, context: grpc.ServicerContext) -> names_pb2.Entries:
        """Return the entry of a name."""
        value = self._leases.resolve(request.name)
        return _entries({} if value is None else {request.name: value})

    def below(self, request: names_pb2.Name, context: grpc.ServicerContext) -> names_pb2.Entries:
        """Return the entries below a name."""
        try:
            return _entries(self._leases.below(request.name))
        except ValueError as error:
            refuse(_log, context, error)


def method_handlers(leases: Leases) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server."""
    return handlers_of(SERVICE, NamesServicer(leases))


def _entries(found: dict[str, str]) -> names_pb2.Entries:
    entries = [names_pb2.Entry(name=name, value=value) for name, value in found.items()]
    return names_pb2.Entries(entries=entries)
