"""Opens gRPC channels, guarded by the access of this process."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import grpc

# grpc imports it with the first channel: here, so that forked workers share it.
import grpc._channel
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

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


class GuardedChannel(grpc.Channel):
    """Makes calls through a channel of ``connect``; connects anew once ``files`` have changed.

    Each call shows ``token``, if there is one. A call with one message and one answer that is
    refused is made again if there is a newer token than the one that it has shown: the server may
    have read the same file a second before.

    ``connect`` runs at once, and its exceptions propagate. Each call looks at the files, at most
    once a second. If ``check`` raises for changed files, that is logged, and the channel stays: of
    a certificate and its key, one may not be copied yet. A running call keeps its connection;
    servers end connections without a call (``channel_options.IDLE_MS``). For several threads.
    """

    def __init__(
        self,
        connect: Callable[[], grpc.Channel],
        token: Callable[..., str] | None = None,
        files: Sequence[Path] = (),
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._connect, self._check = connect, check
        self.token = token
        self._opened: list[grpc.Channel] = []
        self._lock = threading.Lock()
        self._newest = FromFiles(files, self._open, _complain)

    def newest(self) -> grpc.Channel:
        """Return the channel for a call that begins now."""
        with self._lock:
            return self._newest.content()

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, "unary_unary", arguments, named)

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, "unary_stream", arguments, named)

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, "stream_unary", arguments, named)

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return the caller of a method, like a channel of gRPC."""
        return _Method(self, "stream_stream", arguments, named)

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

    def __enter__(self) -> "GuardedChannel":
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
    """Makes the calls of a method, each on the newest channel and with the token.

    ``kind`` is the maker of the method, by which the messages come alone or in streams.
    """

    def __init__(self, channel: GuardedChannel, kind: str, arguments: Any, named: Any) -> None:
        self._channel = channel
        self._make: Callable[[Any], Any] = methodcaller(kind, *arguments, **named)
        #: A stream of messages is not there a second time.
        self._is_repeated = kind == "unary_unary"
        #: The channel that was used last, and the method there.
        self._last: tuple[grpc.Channel | None, Any] = (None, None)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._answered("__call__", *arguments, **named)

    def with_call(self, *arguments: Any, **named: Any) -> Any:
        return self._answered("with_call", *arguments, **named)

    def future(self, *arguments: Any, **named: Any) -> Any:
        token = self._token()
        call = self._begun("future", token, *arguments, **named)

        def again(error: grpc.RpcError) -> Any:
            return self._begun("future", self._newer(token, error), *arguments, **named)

        return _RepeatedCall(call, again)

    def _answered(self, way: str, *arguments: Any, **named: Any) -> Any:
        token = self._token()
        try:
            return self._begun(way, token, *arguments, **named)
        except grpc.RpcError as error:
            return self._begun(way, self._newer(token, error), *arguments, **named)

    def _token(self, **how: bool) -> str | None:
        return None if self._channel.token is None else self._channel.token(**how)

    def _newer(self, shown: str | None, error: grpc.RpcError) -> str:
        """Return a newer token than a refused one; raise ``error`` if it has another cause."""
        is_refused = error.code() is grpc.StatusCode.UNAUTHENTICATED
        if is_refused and self._is_repeated and shown is not None:
            newest = self._token(looks=True)
            if newest is not None and newest != shown:
                return newest
        raise error

    def _begun(self, way: str, token: str | None, *arguments: Any, **named: Any) -> Any:
        if token is not None:
            shown = (AUTHORIZATION, BEARER + token)
            named = {**named, "metadata": [*(named.get("metadata") or ()), shown]}
        channel = self._channel.newest()
        last, method = self._last
        if last is not channel:
            method = self._make(channel)
            self._last = channel, method
        return getattr(method, way)(*arguments, **named)


class _RepeatedCall:
    """A call whose answer is waited for later; if it fails, ``again`` makes another or raises."""

    def __init__(self, call: Any, again: Callable[[grpc.RpcError], Any]) -> None:
        self._call = call
        self._again = again

    def result(self, timeout: float | None = None) -> Any:
        try:
            return self._call.result(timeout)
        except grpc.RpcError as error:
            self._call = self._again(error)
        return self._call.result(timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


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
    token = None if access.tokens is None else partial(access.tokens.own, Role.SERVER)
    if tls is not None and not url.startswith("unix:"):
        return GuardedChannel(
            lambda: grpc.secure_channel(url, _credentials(tls), options),
            token,
            tls.paths,
            check=lambda: client_context(tls),
        )
    _require_that_no_token_can_be_read(access, url)
    channel = grpc.insecure_channel(url, options=options)
    return channel if token is None else GuardedChannel(lambda: channel, token)


def methods_of(
    service: ServiceDescriptor, channel: grpc.Channel
) -> Mapping[str, Callable[..., Any]]:
    """Return what calls the methods of a service, by their names; each takes one message."""
    return {
        method.name: channel.unary_unary(
            f"/{service.full_name}/{method.name}",
            GetMessageClass(method.input_type).SerializeToString,
            GetMessageClass(method.output_type).FromString,
        )
        for method in service.methods
    }


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
