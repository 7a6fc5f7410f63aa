"""Opens gRPC channels, guarded by the access of this process."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc

# grpc imports it with the first channel: here, so that forked workers share it.
import grpc._channel

from relaax.address import Address, is_loopback
from relaax.errors import ConfigurationError
from relaax.net import channel_options
from relaax.net.access import Access, Role, TlsFiles, current_access
from relaax.net.access.file_stamp import FromFiles
from relaax.net.access.tls import client_context
from relaax.processes.run_variables import run_of_this_process

_log = logging.getLogger(__name__)

#: The key of a call's metadata that carries the token.
AUTHORIZATION, BEARER = "authorization", "Bearer "


class RenewedChannel(grpc.Channel):
    """Makes calls through a channel of ``connect``; connects anew once ``files`` have changed.

    ``connect`` runs at once, and its exceptions propagate. Each call looks at the files, at most
    once a second. If ``check`` raises for changed files, that is logged, and the channel stays: of
    a certificate and its key, one may not be copied yet. A running call keeps its connection;
    servers end connections without a call (``channel_options.IDLE_MS``). For several threads.
    """

    def __init__(
        self,
        files: Sequence[Path],
        connect: Callable[[], grpc.Channel],
        check: Callable[[], object],
    ) -> None:
        self._connect, self._check = connect, check
        self._opened: list[grpc.Channel] = []
        self._lock = threading.Lock()
        self._newest = FromFiles(files, self._open, _complain)

    def newest(self) -> grpc.Channel:
        """Return the channel for a call that begins now."""
        with self._lock:
            return self._newest.content()

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, lambda channel: channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, lambda channel: channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, lambda channel: channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, lambda channel: channel.stream_stream(*arguments, **named))

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
        """Report how the connection is, until it is renewed."""
        self.newest().subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Any) -> None:
        """Report to ``callback`` no more."""
        self.newest().unsubscribe(callback)

    def close(self) -> None:
        """Close all connections; calls that wait end with it."""
        for channel in self._opened:
            channel.close()

    def __enter__(self) -> "RenewedChannel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> grpc.Channel:
        if self._opened:
            self._check()
            _log.info("other servers are shown the renewed certificate from now on")
        self._opened.append(self._connect())
        return self._opened[-1]


class _Method:
    """Makes the calls of a method, each on the newest channel."""

    def __init__(self, renewed: RenewedChannel, method_of: Callable[[grpc.Channel], Any]) -> None:
        self._renewed = renewed
        self._method_of = method_of
        #: The channel that was used last, and the method there.
        self._last: tuple[grpc.Channel | None, Any] = (None, None)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._method()(*arguments, **named)

    def with_call(self, *arguments: Any, **named: Any) -> Any:
        return self._method().with_call(*arguments, **named)

    def future(self, *arguments: Any, **named: Any) -> Any:
        return self._method().future(*arguments, **named)

    def _method(self) -> Any:
        channel = self._renewed.newest()
        last, method = self._last
        if last is not channel:
            method = self._method_of(channel)
            self._last = channel, method
        return method


def _complain(error: Exception) -> None:
    _log.error("other servers are still shown the certificate read before: %s", error)


def open_channel(url: str) -> grpc.Channel:
    """Return a channel to ``host:port`` that shows the token and the certificate of this process.

    Both may be renewed while it is used. It goes through the proxy of this process if that has one,
    and never through one of the environment's variables. ConfigurationError where a token
    would go over a network in plain text, and for files that cannot be read.
    """
    access = current_access()
    tls, options = access.tls, channel_options.client(access.proxy, run_of_this_process())
    if tls is not None and not url.startswith("unix:"):
        channel = RenewedChannel(
            tls.paths,
            connect=lambda: grpc.secure_channel(url, _credentials(tls), options),
            check=lambda: client_context(tls),
        )
        return _with_tokens(channel, access)
    _require_that_no_token_can_be_read(access, url)
    return _with_tokens(grpc.insecure_channel(url, options=options), access)


def _with_tokens(channel: grpc.Channel, access: Access) -> grpc.Channel:
    tokens = access.tokens
    if tokens is None:
        return channel
    return grpc.intercept_channel(channel, _ShowToken(partial(tokens.own, Role.SERVER)))


def _credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=files.read(files.ca),
        private_key=files.read(files.key),
        certificate_chain=files.read(files.cert),
    )


def _require_that_no_token_can_be_read(access: Access, url: str) -> None:
    if access.tokens is None or access.is_insecure or url.startswith("unix:"):
        return
    if not is_loopback(Address.parse(url).host):
        raise ConfigurationError(
            f"the token would go to {url} in plain text, where others can read it: give "
            "--tls-ca, or allow it with --insecure"
        )


class _CallDetails(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class _CallDetailsOfGrpc(_CallDetails, grpc.ClientCallDetails):
    """The details that gRPC hands on with a call."""


class _ShowToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Puts a token into the metadata of each call.

    A call with one message and one answer that is refused is made again if there is a newer token
    than the one that it has shown: the server may have read the same file a second before.
    """

    def __init__(self, token: Callable[..., str]) -> None:
        self._token = token

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        shown = self._token()

        def again() -> Any | None:
            newest = self._token(looks=True)
            return None if newest == shown else continuation(_with_token(details, newest), request)

        return _RepeatedCall(continuation(_with_token(details, shown), request), again)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(_with_token(details, self._token()), request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(_with_token(details, self._token()), requests)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(_with_token(details, self._token()), requests)


class _RepeatedCall:
    """A call that is made ``again`` when its answer is waited for, and its token was refused.

    ``again`` returns None where it would be refused in the same way.
    """

    def __init__(self, call: Any, again: Callable[[], Any | None]) -> None:
        self._call = call
        self._again = again

    def result(self, timeout: float | None = None) -> Any:
        try:
            return self._call.result(timeout)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                raise
            call = self._again()
            if call is None:
                raise
            self._call = call
        return self._call.result(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


def _with_token(details: Any, token: str) -> _CallDetailsOfGrpc:
    return _CallDetailsOfGrpc(
        details.method,
        details.timeout,
        [*(details.metadata or ()), (AUTHORIZATION, BEARER + token)],
        details.credentials,
        details.wait_for_ready,
        details.compression,
    )
