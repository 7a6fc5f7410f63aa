"""Makes both ends of the bridge."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from relaax.address import Address
from relaax.algorithm_base import (
    BridgeBase,
    BridgeControlBase,
    Phase,
    RunningParameterServer,
)
from relaax.bridge import channel_options
from relaax.bridge.service import ParameterServerServicer, method_handlers
from relaax.bridge.sharded import ShardedBridge
from relaax.bridge.stub import Bridge
from relaax.bridge.vectors import SERVICE_NAME

#: Threads that answer workers; calls are short, so that a few serve many workers.
THREADS = 16


class BridgeControl(BridgeControlBase):
    """The generic bridge's two ends."""

    def parameter_server_stub(self, parameter_server_url: str) -> BridgeBase:
        """Return the worker's end; of several shards, if their addresses are joined by commas."""
        urls = parameter_server_url.split(",")
        return Bridge(urls[0]) if len(urls) == 1 else ShardedBridge(urls)

    def start_parameter_server(self, address: str, service: BridgeBase) -> RunningParameterServer:
        """Listen at ``address``, with health checking and reflection; OSError if it is taken."""
        return GrpcParameterServer(address, service)


def require_free(address: Address) -> None:
    """Raise OSError with the system's reason: gRPC logs its own and raises without one."""
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, where = infos[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(where)


class GrpcParameterServer:
    """Listens for workers, with health checking and reflection; OSError if the address is taken.

    ``others`` answer what is none of the bridge's, on ``more_threads``.
    """

    def __init__(
        self,
        address: str,
        service: BridgeBase,
        others: Sequence[grpc.GenericRpcHandler] = (),
        more_threads: int = 0,
    ) -> None:
        # Every call from outside enters here: access control will be an interceptor of this server.
        threads = ThreadPoolExecutor(THREADS + more_threads)
        self._server = grpc.server(threads, options=channel_options.SERVER)
        self._servicer = ParameterServerServicer(service)
        self._health = health.HealthServicer()
        self._server.add_generic_rpc_handlers((method_handlers(self._servicer), *others))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        try:
            require_free(Address.parse(address))
            self._server.add_insecure_port(address)
        except (OSError, RuntimeError) as error:
            raise OSError(f"cannot listen at {address}: {error}") from error
        self._server.start()
        for name in ("", SERVICE_NAME):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    def set_phase(self, phase: Phase) -> None:
        """Answer every caller with it from now on."""
        self._servicer.phase = phase

    def all_know(self) -> bool:
        """Return whether all who asked lately have been told the phase."""
        return self._servicer.all_know_the_phase()

    def stop(self, grace_s: float) -> None:
        """Say "not serving", refuse new calls, and close when the running ones are done."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()
