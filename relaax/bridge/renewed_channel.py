"""A gRPC channel whose certificate may be renewed while it is used."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from relaax.access.file_stamp import FromFiles

_log = logging.getLogger(__name__)


class RenewedChannel(grpc.Channel):  # type: ignore[misc]  # grpc has no types
    """Makes calls through what ``connect`` returns; connects anew once ``files`` have changed.

    ``connect`` runs at once, and raises what it raises. Each call looks at the files, at most once
    a second. Changed ones that ``check`` raises for are logged, and leave the channel as it was: of
    a certificate and its key, one may not be copied yet. A call that runs keeps its connection,
    which is closed when the next one is replaced. For several threads.
    """

    def __init__(
        self,
        files: Sequence[Path],
        connect: Callable[[], grpc.Channel],
        check: Callable[[], object],
    ) -> None:
        self._connect, self._check = connect, check
        #: The channel before the newest one, and that.
        self._opened: list[grpc.Channel] = []
        self._lock = threading.Lock()
        self._newest = FromFiles(files, self._open, _complain)

    def newest(self) -> grpc.Channel:
        """Return the channel for a call that begins now."""
        with self._lock:
            return self._newest.content()

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _Method(self, lambda channel: channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _Method(self, lambda channel: channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _Method(self, lambda channel: channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
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
        if len(self._opened) > 2:
            self._opened.pop(0).close()
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
