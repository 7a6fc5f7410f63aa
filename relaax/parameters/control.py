"""Makes both ends of the bridge."""

from collections.abc import Callable, Sequence

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from relaax.algorithm_base import (
    BridgeControlBase,
    ParameterLink,
    Phase,
    RunningParameterServer,
    Slice,
)
from relaax.net import channel_options
from relaax.net.guarded_server import GuardedServer
from relaax.parameters.sender_totals import SenderTotals
from relaax.parameters.service import ParameterServerServicer, Versions, method_handlers
from relaax.parameters.sharded import ShardedBridge
from relaax.parameters.stage import Stage
from relaax.parameters.stub import Bridge
from relaax.parameters.vectors import SERVICE_NAME

#: Threads that answer workers; calls are short, so that a few serve many workers.
THREADS = 16


class BridgeControl(BridgeControlBase):
    """The generic bridge's two ends; ``senders`` remember whose steps were counted.

    ``others`` answer calls of other services at the same port. ``versions`` are those of a
    parameter database, and ``stage`` returns that of a curriculum, if there is one.
    """

    def __init__(
        self,
        senders: SenderTotals | None = None,
        others: Sequence[grpc.GenericRpcHandler] = (),
        versions: Versions | None = None,
        stage: Callable[[], Stage | None] = lambda: None,
    ) -> None:
        self._senders = senders
        self._others = others
        self._versions = versions
        self._stage = stage

    def parameter_server_stub(self, parameter_server_url: str) -> ParameterLink:
        """Return the worker's end; of several shards, if their addresses are joined by commas."""
        urls = parameter_server_url.split(",")
        return Bridge(urls[0]) if len(urls) == 1 else ShardedBridge(urls)

    def start_parameter_server(
        self, address: str, service: ParameterLink
    ) -> RunningParameterServer:
        """Listen at ``address``, with health checking and reflection; OSError if it is taken."""
        return GrpcParameterServer(
            address,
            service,
            self._others,
            senders=self._senders,
            versions=self._versions,
            stage=self._stage,
        )


class GrpcParameterServer:
    """Listens for workers, with health checking and reflection; OSError if the address is taken.

    ``others`` answer calls of other services. ``missing`` returns in words why gradients are not
    applied, or "". Messages may be twice as large as the values that the service has now.
    ``senders`` remember whose steps were counted. ``part`` is the slice of a shard. ``versions``
    are those of a parameter database, and ``stage`` returns that of a curriculum, if there is one.
    """

    def __init__(
        self,
        address: str,
        service: ParameterLink,
        others: Sequence[grpc.GenericRpcHandler] = (),
        missing: Callable[[], str] = str,
        senders: SenderTotals | None = None,
        part: Slice | None = None,
        versions: Versions | None = None,
        stage: Callable[[], Stage | None] = lambda: None,
    ) -> None:
        self._servicer = ParameterServerServicer(service, missing, senders, part, versions, stage)
        handlers = (method_handlers(self._servicer), *others)
        self._server = GuardedServer(THREADS, handlers, most_bytes=most_bytes(service))
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server.grpc)
        names = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server.grpc)
        self._server.start(address)
        for name in ("", SERVICE_NAME):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def set_phase(self, phase: Phase) -> None:
        """Answer every caller with it from now on."""
        self._servicer.phase = phase

    def refuse_calls(self) -> None:
        """Answer no more calls of the bridge, as if it were away; ``others`` are answered."""
        self._servicer.refuse_calls()

    def all_know(self) -> bool:
        """Return whether all callers of the last seconds have been answered with the phase."""
        return self._servicer.all_know_the_phase()

    def stop(self, grace_s: float) -> None:
        """Say "not serving", refuse new calls, and close when the running ones are done."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()


def most_bytes(service: ParameterLink) -> int:
    """Return how large a message of a service may be."""
    try:
        vector = service.pull().vector
    except Exception:  # of an algorithm's own code, which says so to those that ask
        return channel_options.MOST_BYTES
    if vector is None:
        return channel_options.MOST_BYTES
    return channel_options.most_bytes_of(vector.nbytes)
