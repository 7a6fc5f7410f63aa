"""Opens gRPC channels: guarded as the access of this process says."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import grpc

# grpc imports it with the first channel: here, so that forked workers share it.
import grpc._channel

from relaax.access import Access, Role, TlsFiles, current_access
from relaax.access.tls import client_context
from relaax.address import Address, is_loopback
from relaax.bridge import channel_options
from relaax.bridge.renewed_channel import RenewedChannel
from relaax.errors import ConfigurationError

#: The key of a call's metadata that carries the token.
AUTHORIZATION, BEARER = "authorization", "Bearer "


def open_channel(url: str) -> grpc.Channel:
    """Return a channel to ``host:port`` that shows the token and the certificate of this process.

    Both may be renewed while it is used. ConfigurationError where a token would go over a network
    in plain text, and for files that cannot be read.
    """
    access = current_access()
    tls = access.tls
    if tls is not None and not url.startswith("unix:"):
        channel = RenewedChannel(
            tls.paths, connect=lambda: _secure_channel(url, tls), check=lambda: client_context(tls)
        )
        return _with_tokens(channel, access)
    _require_that_no_token_can_be_read(access, url)
    return _with_tokens(grpc.insecure_channel(url, options=channel_options.CLIENT), access)


def _secure_channel(url: str, files: TlsFiles) -> grpc.Channel:
    return grpc.secure_channel(url, _credentials(files), channel_options.CLIENT)


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
    """What gRPC hands on with a call."""


class _ShowToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Puts a token into the metadata of each call.

    One that waits for its answer, and is refused, is made again if there is a newer token than that
    which it has shown: the server may have looked into the same file a second before.
    """

    def __init__(self, token: Callable[..., str]) -> None:
        self._token = token

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        shown = self._token()
        call = continuation(_with_token(details, shown), request)
        # Those that nobody waits for yet have not ended, and to ask why would wait for it.
        if not isinstance(call, grpc.RpcError) or not call.done():
            return call
        if call.code() is not grpc.StatusCode.UNAUTHENTICATED:
            return call
        newest = self._token(looks=True)
        return call if newest == shown else continuation(_with_token(details, newest), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(_with_token(details, self._token()), request)

    def intercept_stream_unary(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(_with_token(details, self._token()), requests)

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        return continuation(_with_token(details, self._token()), requests)


def _with_token(details: Any, token: str) -> _CallDetailsOfGrpc:
    return _CallDetailsOfGrpc(
        details.method,
        details.timeout,
        [*(details.metadata or ()), (AUTHORIZATION, BEARER + token)],
        details.credentials,
        details.wait_for_ready,
        details.compression,
    )
