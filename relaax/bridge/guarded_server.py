"""Makes gRPC servers: guarded as the access of this process says."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc

from relaax.access import (
    Refusals,
    Right,
    TlsFiles,
    TokenFile,
    current_access,
    require_guarded,
)
from relaax.address import Address, host_of
from relaax.bridge import channel_options
from relaax.bridge.channels import AUTHORIZATION, BEARER
from relaax.bridge.free_address import require_free, taken_alone
from relaax.bridge.refusals import address_of
from relaax.errors import ConfigurationError

#: How many refused calls may wait for their answers at a time: each holds a thread.
_MOST_WAITING = 2


class GuardedServer:
    """A gRPC server at one address. Each call needs a token, where this process has tokens.

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
        self._access = current_access()
        interceptors = []
        if self._access.tokens is not None:
            interceptors.append(_AskForToken(self._access.tokens, self._access.refusals))
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
                self.grpc.add_insecure_port(str(taken))
            else:
                self.grpc.add_secure_port(str(taken), _credentials(tls))

    def stop(self, grace_s: float) -> threading.Event:
        """Refuse new calls; what is returned is set when the running ones are done."""
        ended: threading.Event = self.grpc.stop(grace_s)
        return ended


def _credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return credentials whose files are read again for each connection."""

    def configuration() -> Any:
        key, cert = files.read(files.key), files.read(files.cert)
        return grpc.ssl_server_certificate_configuration([(key, cert)], files.read(files.ca))

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=files.ca is not None
    )


class _AskForToken(grpc.ServerInterceptor):
    """Lets calls pass whose metadata have the token of a server."""

    def __init__(self, tokens: TokenFile, refusals: Refusals) -> None:
        self._tokens = tokens
        # Of streams, whatever the method is: so nothing of a message is waited for or read.
        self._refused = grpc.stream_stream_rpc_method_handler(_Refuser(refusals))

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """Return the handler of a call, or one that refuses it."""
        shown = next(
            (value for key, value in details.invocation_metadata if key == AUTHORIZATION), ""
        )
        token = shown.removeprefix(BEARER)
        if self._tokens.allows(token, Right.SYNCHRONIZE):
            return continuation(details)
        return self._refused


class _Refuser:
    """Answers calls that are refused, later and later."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals
        self._waiting = threading.Semaphore(_MOST_WAITING)

    def __call__(self, requests: Any, context: grpc.ServicerContext) -> NoReturn:
        delay_s = self._refusals.add(
            "gRPC",
            host_of(address_of(context)),
            "it has not the token of a server (--auth-token-file)",
        )
        if delay_s and self._waiting.acquire(blocking=False):
            try:
                time.sleep(delay_s)
            finally:
                self._waiting.release()
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "this server asks for the token of a server: see --auth-token-file",
        )
        raise AssertionError("abort raises")
