"""Passes calls on: many clients reach a server, and its messages reach them, through proxies."""

import threading
from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import grpc

from relaax.address import Address
from relaax.compat.memoire.service import CALL_TIMEOUT_S, MOST_WAITING
from relaax.errors import ConfigurationError
from relaax.net import channel_options
from relaax.net.channels import open_channel
from relaax.net.guarded_server import GuardedServer

#: Threads that answer calls at a port, beside those that hold waiting subscribers.
THREADS = 32

#: Calls at once, as Memoire's examples have it.
HIGH_WATER_MARK = 1024

#: How long calls may go on when a port closes, and how long it may take when they are broken off.
GRACE_S, CLOSE_S = 1.0, 2.0

_TCP, _IPC, _INPROC = "tcp://", "ipc://", "inproc://"


class Mode(Enum):
    """Whether an end listens (``Bind``) or calls (``Conn``)."""

    Bind = "Bind"
    Conn = "Conn"


Bind, Conn = Mode.Bind, Mode.Conn


def is_inproc(endpoint: str) -> bool:
    """Return whether an endpoint is one inside of a process."""
    return endpoint.startswith(_INPROC)


def target_of(endpoint: str) -> str:
    """Return the gRPC target of ``tcp://HOST:PORT``, ``ipc://PATH``, or HOST:PORT.

    ``*`` as the host is every address of this machine. ConfigurationError for others.
    """
    if endpoint.startswith(_IPC) and len(endpoint) > len(_IPC):
        return f"unix:{endpoint.removeprefix(_IPC)}"
    host_and_port = endpoint.removeprefix(_TCP)
    if host_and_port.startswith("*:"):
        host_and_port = "0.0.0.0" + host_and_port[1:]  # noqa: S104 - the user's own "*"
    try:
        return str(Address.parse(host_and_port))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"an endpoint is tcp://HOST:PORT, tcp://*:PORT to listen everywhere, or ipc://PATH; "
            f"this is {endpoint!r}"
        ) from error


#: Answer the calls that come at a port.
Handlers: TypeAlias = Sequence[grpc.GenericRpcHandler]


class Proxy:
    """Proxies of one process. Each ``main`` returns when ``close`` is called."""

    def __init__(self) -> None:
        self._ports: dict[str, GuardedServer] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._forwarders: list[Forwarder] = []
        #: Larger messages are refused by ports that are opened from then on; not one of Memoire's.
        self.max_message_bytes = channel_options.MOST_BYTES

    def rep_proxy_main(
        self,
        front_ep: str,
        front_mode: Mode,
        back_ep: str,
        back_mode: Mode,
        hwm: int = HIGH_WATER_MARK,
    ) -> None:
        """Pass calls that come at ``front_ep`` on to a server, or proxy, at ``back_ep``.

        At most ``hwm`` calls at once.
        """
        self._open(front_ep, self._behind(front_mode, back_ep, back_mode), hwm)
        self._closed.wait()

    #: Entries and log messages take the same way.
    pull_proxy_main = rep_proxy_main

    def pub_proxy_main(
        self,
        front_ep: str,
        front_mode: Mode,
        back_ep: str,
        back_mode: Mode,
        hwm: int = HIGH_WATER_MARK,
    ) -> None:
        """Subscribe to a server, or proxy, at ``front_ep``, and serve subscribers at ``back_ep``.

        A message is fetched once for all subscribers that wait for it.
        """
        _require((front_mode, Conn), (back_mode, Bind), "calls in front and listens behind")
        self._open(back_ep, self._forwarding(front_ep, shares=True), hwm)
        self._closed.wait()

    def close(self) -> None:
        """Close all ports and let every ``main`` return."""
        self._closed.set()
        for forwarder in self._forwarders:
            forwarder.close()
        with self._lock:
            for end in [port.stop(GRACE_S) for port in self._ports.values()]:
                end.wait(GRACE_S + CLOSE_S)

    def _behind(self, front_mode: Mode, back_ep: str, back_mode: Mode) -> Handlers:
        """Return the handlers of the calls that come in front."""
        _require((front_mode, Bind), (back_mode, Conn), "listens in front and calls behind")
        return self._forwarding(back_ep, shares=False)

    def _forwarding(self, endpoint: str, shares: bool) -> Handlers:
        self._forwarders.append(Forwarder(target_of(endpoint), shares))
        return self._forwarders[-1:]

    def _open(self, endpoint: str, handlers: Handlers, hwm: int) -> None:
        """Answer at an endpoint, unless a port is open there already; OSError if it is taken.

        Further calls than ``hwm`` at once are refused, and tried again by their clients; 0 sets no
        limit.
        """
        target = target_of(endpoint)
        with self._lock:
            if target not in self._ports and not self._closed.is_set():
                port = GuardedServer(
                    THREADS + MOST_WAITING, handlers, hwm or None, self.max_message_bytes
                )
                port.start(target)
                self._ports[target] = port


def _require(front: tuple[Mode, Mode], back: tuple[Mode, Mode], rule: str) -> None:
    if front[0] is not front[1] or back[0] is not back[1]:
        raise ConfigurationError(
            f"this proxy {rule}: its modes are {front[1].name} and {back[1].name}, not "
            f"{front[0].name} and {back[0].name}"
        )


class Forwarder(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers every call with the answer of a server at ``target``.

    If it ``shares``, equal calls at the same time are one call, which has no effect at the server.
    """

    def __init__(self, target: str, shares: bool) -> None:
        self._channel = open_channel(target)
        self._shares = shares
        self._running: dict[tuple[str, bytes], grpc.Future] = {}
        self._lock = threading.Lock()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of a call, as gRPC asks for it."""
        method = handler_call_details.method
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._forward(method, request, context)
        )

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        call, timeout_s = self._channel.unary_unary(method), context.time_remaining()
        timeout_s = timeout_s or CALL_TIMEOUT_S
        try:
            answer: bytes = (
                self._shared(call, (method, request), timeout_s)
                if self._shares
                else call(request, timeout=timeout_s)
            )
            return answer
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise AssertionError("abort raises") from error

    def _shared(
        self, call: grpc.UnaryUnaryMultiCallable, key: tuple[str, bytes], timeout_s: float
    ) -> bytes:
        with self._lock:
            running = self._running.get(key)
            if running is None or running.done():
                running = self._running[key] = call.future(key[1], timeout=timeout_s)
        try:
            answer: bytes = running.result()
            return answer
        finally:
            with self._lock:
                if self._running.get(key) is running:
                    del self._running[key]
