"""The HTTP port for operators: health checks, and figures for Prometheus."""

import os
import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, make_wsgi_app
from prometheus_client.registry import Collector

from relaax.address import Address
from relaax.server.common.listening import listen_as_told

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

#: What is wrong, in words for people; None while all is well.
Check: TypeAlias = Callable[[], str | None]

#: Returns figures as they are now.
Figures: TypeAlias = Callable[[], Iterable[Metric]]

#: A request, or the reading of an answer, that takes longer is given up.
_REQUEST_S = 10.0

#: A parameter server that has not answered for so long is away: all ask it twice a second.
AWAY_S = 5.0

#: How often the thread looks whether it should end.
_POLL_S = 0.1

_STARTING = "it is starting"

_PATHS = "/healthz, /readyz and /metrics are here"


def away(silence_s: Callable[[], float]) -> Check:
    """Return what says whether the parameter server is away, which is silent for ``silence_s``."""

    def check() -> str | None:
        return "the parameter server does not answer" if silence_s() > AWAY_S else None

    return check


def operator_listener(address: Address | None) -> socket.socket | None:
    """Return a socket that listens at ``address``, if there is one.

    ConfigurationError, which names the option, if the address cannot be had.
    """
    return None if address is None else listen_as_told(address, "--http-bind")


class OperatorPort:
    """Answers HTTP at ``listener``, which it owns, on threads of its own.

    - ``/healthz``: 200 while the process does its work, 503 and what is wrong otherwise.
    - ``/readyz``: the same of whether it can do what it is asked. It cannot before ``begin``.
    - ``/metrics``: all figures, and those of the process ``pid``, for Prometheus.

    Without a listener it answers nobody: a server need not ask whether there is one.
    """

    def __init__(self, listener: socket.socket | None, pid: Callable[[], int] = os.getpid) -> None:
        self._alive: list[Check] = []
        self._ready: list[Check] = []
        self._has_begun = False
        self._figures: list[Figures] = []
        self._server: _Server | None = None
        #: Whether anybody can ask.
        self.is_open = listener is not None
        if listener is None:
            return
        registry = CollectorRegistry()
        ProcessCollector(pid=pid, registry=registry)
        registry.register(_Reading(self._read))
        self._answer_metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(registry)
        self._server = _Server(listener, self._answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="operators", daemon=True
        )
        self._thread.start()

    def begin(self) -> None:
        """Take note that the server has started."""
        self._has_begun = True

    def alive_if(self, check: Check) -> None:
        """Let ``/healthz`` ask, too."""
        self._alive.append(check)

    def ready_if(self, check: Check) -> None:
        """Let ``/readyz`` ask, too."""
        self._ready.append(check)

    def show(self, figures: Figures) -> None:
        """Let ``/metrics`` show these, too."""
        self._figures.append(figures)

    def close(self) -> None:
        """Answer nothing any more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _read(self) -> Iterable[Metric]:
        for figures in self._figures:
            yield from figures()

    def _answer(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                return self._answer_metrics(environ, start_response)
            case "/healthz":
                return _say(start_response, _complaints(self._alive))
            case "/readyz" if not self._has_begun:
                return _say(start_response, [_STARTING])
            case "/readyz":
                return _say(start_response, _complaints(self._ready))
        return _answer_text(start_response, "404 Not Found", _PATHS)


def _complaints(checks: Iterable[Check]) -> list[str]:
    return [complaint for check in checks if (complaint := check()) is not None]


def _say(start_response: "StartResponse", complaints: list[str]) -> Iterable[bytes]:
    status = "503 Service Unavailable" if complaints else "200 OK"
    return _answer_text(start_response, status, "; ".join(complaints) or "ok")


def _answer_text(start_response: "StartResponse", status: str, text: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{text}\n".encode()]


class _Reading(Collector):
    """Collects what a function returns when Prometheus asks."""

    def __init__(self, read: Figures) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


class _Handler(WSGIRequestHandler):
    timeout = _REQUEST_S

    def log_message(self, *_: object) -> None:
        """Log nothing: load balancers ask every few seconds."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(
        self, listener: socket.socket, application: Callable[..., Iterable[bytes]]
    ) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        listener.setblocking(True)
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self.set_app(application)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of those who leave before their answer."""
