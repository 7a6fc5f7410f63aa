"""A gRPC channel of which the certificate may be renewed while it is used."""

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from relaax.access.file_stamp import FromFiles

_log = logging.getLogger(__name__)


class RenewedChannel(grpc.Channel):  # type: ignore[misc]  # grpc has no types
    """Calls through what ``connect`` returns, and through a new one once ``files`` have changed.

    ``connect`` runs at once, and raises what it raises. Each call looks at the files, at most once
    a second. Changed ones that ``check`` raises for are logged, and leave the channel as it was: of
    a certificate and its key, one may not be copied yet. A call ends on the channel that it began
    on; one that is replaced is closed by the next call after its last one has ended. For several
    threads.
    """

    def __init__(
        self,
        files: Sequence[Path],
        connect: Callable[[], grpc.Channel],
        check: Callable[[], object],
    ) -> None:
        self._lock = threading.Lock()
        self._watchers: dict[Any, bool] = {}
        self._replaced: list[_Counted] = []
        self._is_closed = False
        self._connect, self._check = connect, check
        self._is_opened = False
        self._newest = FromFiles(files, self._open, _complain)
        self._current = self._newest.content()
        self._is_opened = True

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _Method(self, lambda channel: channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _StreamMethod(self, lambda channel: channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _Method(self, lambda channel: channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """Return what makes calls of a method, as a channel of gRPC does."""
        return _StreamMethod(self, lambda channel: channel.stream_stream(*arguments, **named))

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
        """Report how the connection is, of whichever channel is used."""
        with self._lock:
            self._watchers[callback] = try_to_connect
            self._current.channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Any) -> None:
        """Report to ``callback`` no more."""
        with self._lock:
            self._watchers.pop(callback, None)
            self._current.channel.unsubscribe(callback)

    def close(self) -> None:
        """Close all channels; calls that wait end with it."""
        with self._lock:
            self._is_closed = True
            channels = [*self._replaced, self._current]
            self._replaced = []
        for counted in channels:
            counted.channel.close()

    def __enter__(self) -> "RenewedChannel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin_call(self) -> "_Counted":
        """Return the channel for a call, which counts it until its ``end_call``."""
        with self._lock:
            if not self._is_closed:
                self._renew()
            self._current.begin_call()
            ended = [each for each in self._replaced if not each.has_calls]
            self._replaced = [each for each in self._replaced if each not in ended]
            current = self._current
        for counted in ended:
            counted.channel.close()
        return current

    def _open(self) -> "_Counted":
        if self._is_opened:
            self._check()
        return _Counted(self._connect())

    def _renew(self) -> None:
        before, self._current = self._current, self._newest.content()
        if self._current is before:
            return
        _log.info("other servers are shown the renewed certificate from now on")
        self._replaced.append(before)
        for callback, try_to_connect in self._watchers.items():
            before.channel.unsubscribe(callback)
            self._current.channel.subscribe(callback, try_to_connect)


class _Counted:
    """A channel, and how many of its calls have not ended."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self._lock = threading.Lock()
        self._calls = 0

    @property
    def has_calls(self) -> bool:
        return self._calls > 0

    def begin_call(self) -> None:
        with self._lock:
            self._calls += 1

    def end_call(self) -> None:
        with self._lock:
            self._calls -= 1


class _Method:
    """Makes calls that have one answer."""

    def __init__(self, renewed: RenewedChannel, method_of: Callable[[grpc.Channel], Any]) -> None:
        self._renewed = renewed
        self._method_of = method_of
        #: The channel that was used last, and the method there.
        self._last: tuple[_Counted | None, Any] = (None, None)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        counted, method = self._begun()
        try:
            return method(*arguments, **named)
        finally:
            counted.end_call()

    def with_call(self, *arguments: Any, **named: Any) -> Any:
        counted, method = self._begun()
        try:
            return method.with_call(*arguments, **named)
        finally:
            counted.end_call()

    def future(self, *arguments: Any, **named: Any) -> Any:
        counted, method = self._begun()
        return _ending(counted, lambda: method.future(*arguments, **named))

    def _begun(self) -> tuple[_Counted, Any]:
        counted = self._renewed.begin_call()
        last, method = self._last
        if last is not counted:
            method = self._method_of(counted.channel)
            self._last = counted, method
        return counted, method


class _StreamMethod(_Method):
    """Makes calls that have many answers."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        counted, method = self._begun()
        return _ending(counted, lambda: method(*arguments, **named))


def _ending(counted: _Counted, begin: Callable[[], Any]) -> Any:
    """Return the call that is begun; it is counted until it ends."""
    try:
        call = begin()
    except BaseException:
        counted.end_call()
        raise
    # Not add_done_callback: what that keeps would keep a stream alive that nobody reads any more.
    if not call.add_callback(counted.end_call):
        counted.end_call()
    return call


def _complain(error: Exception) -> None:
    _log.error("other servers are still shown the certificate read before: %s", error)
