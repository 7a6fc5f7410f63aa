"""Makes gRPC servers, guarded by the access of this process."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import Any, NoReturn

import grpc

from relaax.address import Address, host_of
from relaax.errors import ConfigurationError
from relaax.net import channel_options
from relaax.net.access import Access, Right, TlsFiles, TokenFile, current_access, require_guarded
from relaax.net.access.process_access import BEGUN, PROVED, Counts
from relaax.net.access.tls import server_context, shown_by_server
from relaax.net.access.tokens import digest_of
from relaax.net.channels import AUTHORIZATION, BEARER
from relaax.net.refusals import address_of
from relaax.processes.run_variables import other_run, run_of_this_process

#: All IPv4 addresses of this machine, and all of IPv6.
_ALL_OF_IPV4, _ALL_OF_IPV6 = "0.0.0.0", "::"  # noqa: S104 - the user's own

#: So many connections are remembered that have shown a right token.
MOST_PROVED_PEERS = 16_384

#: So many handlers are kept with their guards; a server that passes calls on makes a new handler
#: each time.
_MOST_METHODS = 128


def require_free(address: Address) -> None:
    """Raise OSError with the system's reason: gRPC logs its own and raises without one."""
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, where = infos[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(where)


@contextlib.contextmanager
def taken_alone(address: Address) -> Iterator[Address]:
    """Yield the address for gRPC to listen at; it takes no other meanwhile.

    gRPC takes 0.0.0.0 for all addresses of IPv6, too, and listens only at those of IPv4 if the
    others are taken: so this takes them, until gRPC listens.
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


class GuardedServer:
    """A gRPC server at one address. Each call needs a token, where this process has tokens.

    Where this process belongs to a training, calls of another one's are refused.
    A call without the right one gets no answer but UNAUTHENTICATED: not even reflection, or that a
    method exists. A message has at most ``most_bytes``. OSError when the address cannot be had.
    """

    def __init__(
        self,
        threads: int,
        handlers: Sequence[grpc.GenericRpcHandler] = (),
        most_calls: int | None = None,
        most_bytes: int = channel_options.MOST_BYTES,
    ) -> None:
        #: Where it listens, also where the system has chosen the port.
        self.port = 0
        self._access = current_access()
        interceptors: list[grpc.ServerInterceptor] = []
        if self._access.tokens is not None:
            interceptors.append(_AskForToken(self._access.tokens, self._access))
        run = run_of_this_process()
        if run is not None:
            interceptors.append(_RefuseOtherRuns(run))
        self.grpc = grpc.server(
            ThreadPoolExecutor(threads),
            handlers=handlers,
            interceptors=interceptors,
            options=channel_options.server(most_bytes),
            maximum_concurrent_rpcs=most_calls,
        )

    def start(self, address: str) -> None:
        """Listen; OSError if that is impossible."""
        try:
            if address.startswith("unix:"):
                self.grpc.add_insecure_port(address)
            else:
                self._listen(Address.parse(address))
        except ConfigurationError as error:
            raise OSError(str(error)) from error
        except (OSError, RuntimeError) as error:
            raise OSError(f"cannot listen at {address}: {error}") from error
        self.grpc.start()

    def _listen(self, address: Address) -> None:
        tls = self._access.tls
        require_guarded(address, self._access)
        require_free(address)
        with taken_alone(address) as taken:
            if tls is None or tls.cert is None:
                self.port = self.grpc.add_insecure_port(str(taken))
            else:
                self.port = self.grpc.add_secure_port(
                    str(taken), _credentials(tls, self._access.grpc_connections)
                )

    def stop(self, grace_s: float) -> threading.Event:
        """Refuse new calls; the returned event is set when the running ones are done."""
        ended: threading.Event = self.grpc.stop(grace_s)
        return ended


def _credentials(files: TlsFiles, connections: Counts) -> grpc.ServerCredentials:
    """Return credentials whose files are read again once they have changed.

    gRPC asks for them at each connection, by which connections are counted. If it is given a
    certificate and the key of another one, it silently keeps the previous pair; so they are checked
    before.
    """

    def configuration() -> Any:
        server_context(files, clients_need_certificates=True)  # raises for faulty files
        key, cert = files.read(files.key), files.read(files.cert)
        return grpc.ssl_server_certificate_configuration([(key, cert)], files.read(files.ca))

    def for_a_connection() -> Any:
        connections.count(BEGUN)
        return shown.content()

    shown = shown_by_server(files, configuration)
    return grpc.dynamic_ssl_server_credentials(
        shown.content(), for_a_connection, require_client_authentication=files.ca is not None
    )


class _AskForToken(grpc.ServerInterceptor):
    """Lets calls pass whose metadata have the token of a server.

    gRPC names the caller of a call only to its handler, so each handler gets a guard in front of
    it; nothing of a message is waited for or read before the guard has let the call pass.
    """

    def __init__(self, tokens: TokenFile, access: Access) -> None:
        self._tokens = tokens
        self._refusals = access.refusals
        self._connections: Counts | None = None
        if access.tls is not None and access.tls.cert is not None:
            self._connections = access.grpc_connections
        self._peers = ProvedPeers()
        #: Made once for each method, of which a server has a few.
        self._guarded = lru_cache(_MOST_METHODS)(partial(_guarded, self._require))

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Return the handler of a call, whether there is one or not, with a guard."""
        return self._guarded(continuation(details))

    def _require(self, context: grpc.ServicerContext) -> None:
        """Return if a call may pass, and end it if not."""
        token, peer = _shown_token(context), context.peer()
        reason = self._why_refused(token)
        if reason is None:
            if self._peers.add(peer) and self._connections is not None:
                self._connections.count(PROVED)
            return
        self._peers.discard(peer)  # another caller may have its port by now
        self._refusals.add("gRPC", host_of(address_of(context)), reason)
        context.abort(grpc.StatusCode.UNAUTHENTICATED, reason)

    def _why_refused(self, token: str) -> str | None:
        if not token:
            return "no token was shown (--auth-token-file)"
        return self._tokens.why_refused(digest_of(token), Right.SYNCHRONIZE)


class _RefuseOtherRuns(grpc.ServerInterceptor):
    """Refuses calls of processes that belong to another training than this server."""

    def __init__(self, run: str) -> None:
        self._run = run

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Return the handler of a call, or a refusing one."""
        theirs = channel_options.run_of_caller(details.invocation_metadata)
        refusal = other_run("the caller", theirs, self._run)
        if refusal is None:
            return continuation(details)
        return grpc.stream_stream_rpc_method_handler(partial(_refuse, refusal))


def _refuse(reason: str, requests: Any, context: grpc.ServicerContext) -> NoReturn:
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, reason)
    raise AssertionError("abort raises")


class ProvedPeers(dict[str, None]):
    """The connections that have shown a right token; the oldest are dropped first."""

    def __init__(self, most: int = MOST_PROVED_PEERS) -> None:
        super().__init__()
        self._most = most
        self._lock = threading.Lock()

    def add(self, peer: str) -> bool:
        """Take note of a connection; return whether it is a new one."""
        with self._lock:
            is_new = peer not in self
            self[peer] = None
            if len(self) > self._most:
                del self[next(iter(self))]
            return is_new

    def discard(self, peer: str) -> None:
        """Forget a connection, if it is known."""
        with self._lock:
            self.pop(peer, None)


def _shown_token(context: grpc.ServicerContext) -> str:
    for key, value in context.invocation_metadata():
        if key == AUTHORIZATION:
            return str(value).removeprefix(BEARER)
    return ""


def _guarded(require: Callable[[grpc.ServicerContext], None], handler: Any) -> Any:
    """Return a handler that answers as ``handler`` does, if that is there, after ``require``.

    It handles streams, since gRPC reads the message of other handlers before they are called: the
    bytes on the network are the same, and so is the cost.
    """
    if handler is None:
        return grpc.stream_stream_rpc_method_handler(partial(_answer_nothing, require))
    if handler.response_streaming:
        return _with_many_answers(handler, require)
    takes_many = handler.request_streaming
    serve = handler.stream_unary or handler.unary_unary

    def answer(requests: Any, context: grpc.ServicerContext) -> Any:
        require(context)
        return serve(requests if takes_many else _single(requests, context), context)

    return grpc.stream_unary_rpc_method_handler(
        answer, handler.request_deserializer, handler.response_serializer
    )


def _with_many_answers(handler: Any, require: Callable[[grpc.ServicerContext], None]) -> Any:
    serve = handler.stream_stream or handler.unary_stream

    @wraps(serve)  # its attributes tell whether it answers by a callback
    def answer(requests: Any, context: grpc.ServicerContext, *callback: Any, **named: Any) -> Any:
        require(context)
        if not handler.request_streaming:
            requests = _single(requests, context)
        return serve(requests, context, *callback, **named)

    return grpc.stream_stream_rpc_method_handler(
        answer, handler.request_deserializer, handler.response_serializer
    )


def _answer_nothing(
    require: Callable[[grpc.ServicerContext], None], requests: Any, context: grpc.ServicerContext
) -> NoReturn:
    """End a call of an unknown method; only callers with access learn that it is unknown."""
    require(context)
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    raise AssertionError("abort raises")


def _single(requests: Any, context: grpc.ServicerContext) -> Any:
    """Return the message of a call that has but one."""
    for request in requests:
        return request
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "this method takes one message, and none came")
    raise AssertionError("abort raises")
